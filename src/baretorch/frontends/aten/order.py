"""Rows of the ATen table: elements selected by the order of the values, and distances between rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.frontends.aten.index import expanded
from baretorch.frontends.aten.promotion import floating
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering, Result, Scalar
from baretorch.ops.cdist import Cdist
from baretorch.ops.scan import Chosen, KthValue, Median, Mode


def median(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return middle(g, x, axis, keepdim, quiet=False)


def nanmedian(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return middle(g, x, axis, keepdim, quiet=True)


def middle(g: Lowering, x: str, axis: int | None, keepdim: bool, quiet: bool) -> Result:
    """Lower median. Without an axis it is that of all elements, and only the value is returned."""
    if axis is None:
        return g.b.add_many(Median(0, quiet), g.reshape(x, (g[x].count,)))[0]
    return chosen(g, Median(g.axis(x, axis), quiet), x, keepdim)


def kthvalue(g: Lowering, x: str, k: int, axis: int = -1, keepdim: bool = False) -> Result:
    return chosen(g, KthValue(g.axis(x, axis), k - 1), x, keepdim)


def mode(g: Lowering, x: str, axis: int = -1, keepdim: bool = False) -> Result:
    return chosen(g, Mode(g.axis(x, axis)), x, keepdim)


def chosen(g: Lowering, op: Chosen, x: str, keepdim: bool) -> Result:
    """Return values and indices. A single number is a row of one."""
    shape = g.shape(x)
    kept = (*shape[: op.axis], 1, *shape[op.axis + 1 :]) if shape else ()
    if not shape:
        op, x = replace(op, axis=0), g.reshape(x, (1,))
    made = g.b.add_many(op, x)
    return tuple(g.reshape(y, kept) for y in made) if keepdim else made


def cdist(g: Lowering, a: str, b: str, order: Scalar = 2.0, *_: object) -> str:
    """Lower cdist exactly. For many rows, PyTorch may use the matrix product, which loses digits where rows are
    near."""
    a, b = floating(g, a, b)
    batch = np.broadcast_shapes(g.shape(a)[:-2], g.shape(b)[:-2])
    a, b = (expanded(g, t, (*batch, *g.shape(t)[-2:])) for t in (a, b))
    return g.b.add(Cdist(float(order)), a, b)


ROWS: dict[str, AtenRow] = {
    "aten::kthvalue": AtenRow(kthvalue, (KthValue,)),
    "aten::median": AtenRow(median, (Median,)),
    "aten::nanmedian": AtenRow(nanmedian, (Median,)),
    "aten::mode": AtenRow(mode, (Mode,)),
    "aten::cdist": AtenRow(cdist, (Cdist,)),
    "aten::_cdist_forward": AtenRow(cdist, (Cdist,)),
}

"""Rows of the ATen table: small systems of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.frontends.aten.moves import expand
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.aten.shapes import transpose
from baretorch.frontends.lowering import Lowering
from baretorch.ops.solve import Det, Solve


def inv(g: Lowering, x: str, *_: Any) -> str:
    """Lower an inverse, without the check for singular matrices, which raises in PyTorch."""
    return g.b.add(Solve(), x, g.b.const("one", np.eye(g.shape(x)[-1], dtype=np.float32)))


def solve(g: Lowering, a: str, b: str, left: bool = True, *_: Any) -> str:
    """Lower a system of equations. A right side with one dimension less is a vector, or one vector per matrix."""
    shape = g.shape(b)
    if len(shape) == 1 or shape == g.shape(a)[:-1]:
        return g.reshape(solve(g, a, g.reshape(b, (*shape, 1))), shape if len(shape) > 1 else g.shape(a)[:-1])
    if not left:  # y a = b is the other way round of a y = b
        return transpose(g, solve(g, transpose(g, a, -2, -1), transpose(g, b, -2, -1)), -2, -1)
    batch = np.broadcast_shapes(g.shape(a)[:-2], shape[:-2])
    matrices = expand(g, a, (*batch, *g.shape(a)[-2:]))
    return g.b.add(Solve(), matrices, b if len(shape) == 2 else expand(g, b, (*batch, *shape[-2:])))


def det(g: Lowering, x: str) -> str:
    return g.b.add(Det(), x)


ROWS: dict[str, AtenRow] = {
    **dict.fromkeys(("aten::linalg_inv", "aten::linalg_inv_ex", "aten::inverse"), AtenRow(inv, (Solve,))),
    **dict.fromkeys(
        ("aten::linalg_solve", "aten::linalg_solve_ex", "aten::_linalg_solve_ex"), AtenRow(solve, (Solve,))
    ),
    **dict.fromkeys(("aten::linalg_det", "aten::det", "aten::_linalg_det"), AtenRow(det, (Det,))),
}

"""Rows of the ATen table: rows gathered or scattered by indices and reduced: embedding_bag, scatter_reduce."""

from __future__ import annotations

from math import inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.elementwise import div
from baretorch.frontends.aten.index import cut, embedding, put_back
from baretorch.frontends.aten.promotion import cast, operand
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import slice_
from baretorch.frontends.lowering import Lowering, known_value
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Div, Maximum, Mul
from baretorch.ops.index import IndexSelect, Scatter, ScatterReduce
from baretorch.ops.logic import Ne
from baretorch.ops.move import Cat
from baretorch.ops.reduce import Amax, Mean, Sum

SUM, MEAN, MAX = 0, 1, 2  # PyTorch's numbers of the modes


def embedding_bag(
    g: Lowering,
    table: str,
    index: str,
    offsets: str,
    scale_grad: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    weights: str | None = None,
    include_last: bool = False,
    padding: int | None = None,
) -> str:
    """Lower rows of a table, reduced bag by bag. Bags of one size are one reduction; otherwise each has its own."""
    starts = known_value(g, offsets)
    if starts is None:
        raise CompileError(
            "embedding_bag: the bags are computed",
            have=str(g[offsets]),
            need="offsets that are constants of the model",
            try_="an input of shape [bags, indices per bag], padded with padding_idx",
        )
    count = g[index].count
    ends = [*map(int, starts[1:]), *(() if include_last else (count,))]
    bags = list(zip(map(int, starts), ends, strict=False))
    left_out = padding is not None and padding >= 0
    if left_out and mode == MAX:
        raise CompileError("embedding_bag: mode 'max' with padding_idx is not supported", need="mode 'sum' or 'mean'")
    rows = embedding(g, table, index)
    if left_out:
        counted = g.b.add(Ne(), index, operand(g, int(padding or 0), g[index].dtype))
        counts = g.reshape(cast(g, counted, DType.FLOAT32), (count, 1))
        rows = g.b.add(Mul(), rows, counts)
    if weights is not None:
        rows = g.b.add(Mul(), rows, g.reshape(weights, (count, 1)))
    if not left_out or mode == SUM:
        return _bags(g, (Sum, Mean, Amax)[mode], rows, bags)
    some = g.b.add(Maximum(), _bags(g, Sum, counts, bags), operand(g, 1.0, DType.FLOAT32))
    return div(g, _bags(g, Sum, rows, bags), some)


def _bags(g: Lowering, op: type[Sum] | type[Mean] | type[Amax], rows: str, bags: list[tuple[int, int]]) -> str:
    """Reduce the rows of each bag to one; those of an empty bag are 0."""
    count, width = g.shape(rows)
    size = bags[0][1] - bags[0][0] if bags else 0
    if size and bags == [(i, i + size) for i in range(0, count, size)]:
        return g.b.add(op((1,), False), g.reshape(rows, (len(bags), size, width)))
    nothing = g.b.const("empty_bag", np.zeros((1, width), np.float32))
    parts = [g.b.add(op((0,), True), slice_(g, rows, 0, a, b)) if b > a else nothing for a, b in bags]
    return g.b.add(Cat(0), *parts)


# Initial values of reductions that do not include the input.
BEGINS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -inf, "amin": inf}


def scatter_reduce(
    g: Lowering, x: str, axis: int, index: str, source: str, reduce: str, include_self: bool = True
) -> str:
    shape = g.shape(x)
    if not shape:
        x, index, source = (g.reshape(t, (1,)) for t in (x, index, source))
    axis = g.axis(x, axis) if shape else 0
    part = cut(g, x, g.shape(index), axis)
    for i, n in enumerate(g.shape(index)):
        source = slice_(g, source, i, 0, n)
    if not include_self:
        begin = _begin(g[x].dtype, reduce)
        fresh = g.b.const("begin", np.full(g.shape(index), begin, g[x].dtype.numpy))
        part = g.b.add(Scatter(axis), part, index, fresh)
    if reduce in ("prod", "amax", "amin"):
        part = g.b.add(ScatterReduce(axis, reduce), part, index, source)
    else:
        part = g.b.add(Scatter(axis, accumulate=True), part, index, source)
    if reduce == "mean":
        part = _mean(g, part, axis, index, include_self)
    y = put_back(g, x, part)
    return g.reshape(y, shape)


def _begin(dtype: DType, reduce: str) -> float | int:
    """Return the initial value; for integers the number nearest to infinity."""
    begin = BEGINS[reduce]
    if dtype is DType.FLOAT32 or begin in (0.0, 1.0):
        return begin
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if begin > 0 else limits.min)


def _mean(g: Lowering, sums: str, axis: int, index: str, include_self: bool) -> str:
    """Divide sums by their number of summands; if nothing was scattered, that is 1 in any case."""
    dtype = g[sums].dtype
    if dtype is not DType.FLOAT32:
        raise CompileError(
            f"scatter_reduce: the mean of {dtype.label} is not supported",
            have=str(g[sums]),
            need="float32",
            try_="cast the tensors with .float() in the model",
        )
    ones = g.b.const("ones", np.ones(g.shape(index), np.float32))
    begin = g.b.const("count", np.full(g.shape(sums), float(include_self), np.float32))
    counts = g.b.add(Scatter(axis, accumulate=True), begin, index, ones)
    return div(g, sums, g.b.add(Maximum(), counts, operand(g, 1.0, DType.FLOAT32)))


ROWS: dict[str, AtenRow] = {
    **rows(
        "embedding_bag _embedding_bag _embedding_bag_forward_only",
        embedding_bag,
        IndexSelect,
        Sum,
        Mean,
        Amax,
        Mul,
        Div,
        Maximum,
        Ne,
    ),
    **rows("scatter_reduce", scatter_reduce, ScatterReduce, Scatter, Mul, Div, Maximum),
}

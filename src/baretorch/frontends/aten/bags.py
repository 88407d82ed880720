"""Rows of the ATen table: rows gathered or scattered by indices and reduced: embedding_bag, scatter_reduce."""

from __future__ import annotations

from math import inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.elementwise import div
from baretorch.frontends.aten.index import cut, embedding, expand_to, put_back
from baretorch.frontends.aten.promotion import cast, operand
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import slice_
from baretorch.frontends.lowering import Lowering, known_value
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Div, Maximum, Mul, Sub
from baretorch.ops.index import IndexPut, IndexSelect, Scatter, ScatterReduce
from baretorch.ops.logic import Le, Ne, Where
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
    """Lower the operator that users call: a `padding` below 0 counts from the end of the table."""
    padding = -1 if padding is None else padding % g.shape(table)[0]
    return bags_of_rows(g, table, index, offsets, scale_grad, mode, sparse, weights, include_last, padding)


def bags_of_rows(
    g: Lowering,
    table: str,
    index: str,
    offsets: str,
    scale_grad: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    weights: str | None = None,
    include_last: bool = False,
    padding: int = -1,
) -> str:
    """Lower rows of a table, reduced bag by bag. Bags of one known size are a reduction; others are scattered."""
    rows = embedding(g, table, index)
    count, width = g.shape(rows)
    counted = g.b.add(Ne(), index, operand(g, padding, g[index].dtype)) if padding >= 0 else None
    if weights is not None:
        rows = g.b.add(Mul(), rows, g.reshape(weights, (count, 1)))
    bags = g[offsets].count - include_last
    size = _bag_size(g, offsets, count, bags)
    if not size or (counted and mode == MAX):
        return _scattered(g, rows, _bag_of_each(g, offsets, count), counted, bags, mode)
    if counted is None:
        return g.b.add((Sum, Mean, Amax)[mode]((1,), False), g.reshape(rows, (bags, size, width)))
    ones = g.reshape(cast(g, counted, DType.FLOAT32), (bags, size, 1))
    sums = g.b.add(Sum((1,), False), g.b.add(Mul(), g.reshape(rows, (bags, size, width)), ones))
    return sums if mode == SUM else _divided(g, sums, g.b.add(Sum((1,), False), ones))


def _bag_size(g: Lowering, offsets: str, count: int, bags: int) -> int:
    """Return the number of indices of each bag, or 0 if it is not known ahead of time or differs."""
    starts, size = known_value(g, offsets), count // max(bags, 1)
    even = starts is not None and size * bags == count and np.array_equal(starts, np.arange(len(starts)) * size)
    return size if even else 0


def _bag_of_each(g: Lowering, offsets: str, count: int) -> str:
    """Return the bag of each index: the last one that begins there or before."""
    starts = g.reshape(offsets, (g[offsets].count, 1))
    places = g.b.const("places", np.arange(count, dtype=g[offsets].dtype.numpy))
    begun = g.b.add(Sum((0,), False), g.b.add(Le(), starts, places))
    return g.b.add(Sub(), begun, operand(g, 1, g[begun].dtype))


def _scattered(g: Lowering, rows: str, bag: str, counted: str | None, bags: int, mode: int) -> str:
    """Add or compare each row in its bag. Rows that do not count go to one more bag, which is cut off; an empty bag is
    0."""
    count, width = g.shape(rows)
    if counted is not None:
        bag = g.b.add(Where(), counted, bag, operand(g, bags, g[bag].dtype))

    def put(values: str, accumulate: bool) -> str:
        begin = g.b.const("bags", np.zeros((bags + 1, g.shape(values)[1]), np.float32))
        return g.b.add(IndexPut(0, accumulate), begin, bag, values)

    if mode == MAX:  # of one of the bag's own rows and all of them
        at = expand_to(g, g.reshape(bag, (count, 1)), (count, width))
        return slice_(g, g.b.add(ScatterReduce(0, "amax"), put(rows, False), at, rows), 0, 0, bags)
    sums = slice_(g, put(rows, True), 0, 0, bags)
    if mode == SUM:
        return sums
    return _divided(g, sums, slice_(g, put(g.b.const("ones", np.ones((count, 1), np.float32)), True), 0, 0, bags))


def _divided(g: Lowering, sums: str, counts: str) -> str:
    """Divide sums by their number of summands, or by 1 if there is none."""
    return div(g, sums, g.b.add(Maximum(), counts, operand(g, 1.0, DType.FLOAT32)))


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
    return _divided(g, sums, counts)


BAGS = (IndexSelect, Sum, Mean, Amax, Mul, Div, Sub, Maximum, Le, Ne, Where, IndexPut, ScatterReduce)

ROWS: dict[str, AtenRow] = {
    **rows("embedding_bag", embedding_bag, *BAGS),
    **rows("_embedding_bag _embedding_bag_forward_only", bags_of_rows, *BAGS),
    **rows("scatter_reduce", scatter_reduce, ScatterReduce, Scatter, Mul, Div, Maximum),
}

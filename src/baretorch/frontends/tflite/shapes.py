"""Rows of the TFLite table: operators that change only shape, order or position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.indexing import merge_indexed
from baretorch.frontends.lowering import known_value
from baretorch.frontends.tflite import sixteen
from baretorch.frontends.tflite.call import Field, TfliteCall
from baretorch.frontends.tflite.layers import permuted
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow, stored_as
from baretorch.frontends.tflite.reduce import axes_of
from baretorch.frontends.tflite.schema import damaged
from baretorch.ops.index import IndexPut, IndexSelect
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape
from baretorch.ops.move import Cat, Slice

BEGIN, END, ELLIPSIS, NEW_AXIS, SHRINK = (Field(i) for i in range(5))


def reshape(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower RESHAPE, SQUEEZE and EXPAND_DIMS: the result defines its shape."""
    if prod(call.y.shape) != g[call.x()].count:
        raise CompileError(f"{call.name}: {g[call.x()].type} cannot have the shape {list(call.y.shape)}")
    return g.reshape(call.x(), call.y.shape)


def transpose(g: TfliteLowering, call: TfliteCall) -> str:
    dims = g.ints(call.x(1), "the order of TRANSPOSE")
    if sorted(dims) != list(range(len(g.shape(call.x())))):
        raise CompileError(f"TRANSPOSE: {list(dims[:8])} is not an order of {len(g.shape(call.x()))} dimensions")
    return permuted(g, call.x(), dims)


def concatenation(g: TfliteLowering, call: TfliteCall) -> str:
    axis = g.axis(call.x(), call.option(Field(0)))
    return g.limit(g.apply(Cat(axis), call), call.limits(1), call.y)


def concatenation_of_sixteen(g: TfliteLowering, call: TfliteCall) -> str | None:
    return sixteen.concatenation(g, call, Cat(g.axis(call.x(), call.option(Field(0)))))


def split(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    """Lower SPLIT(axis, x) into equal parts."""
    x, count = call.x(1), len(call.outputs)
    (axis,) = (g.axis(x, a) for a in g.ints(call.x(0), "the axis of SPLIT"))
    if g.shape(x)[axis] % count:
        raise CompileError(f"SPLIT: {g.shape(x)[axis]} cannot be cut into {count} equal parts")
    return _parts(g, call, x, axis, [g.shape(x)[axis] // count] * count)


def split_v(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    """Lower SPLIT_V(x, sizes, axis); one size may be -1, which is the rest."""
    x, sizes = call.x(0), g.ints(call.x(1), "the sizes of SPLIT_V")
    (axis,) = (g.axis(x, a) for a in g.ints(call.x(2), "the axis of SPLIT_V"))
    rest = g.shape(x)[axis] - sum(s for s in sizes if s != -1)
    return _parts(g, call, x, axis, [rest if s == -1 else s for s in sizes])


def _parts(g: TfliteLowering, call: TfliteCall, x: str, axis: int, sizes: Sequence[int]) -> tuple[str, ...]:
    """Return slices of these sizes, as many as the call has results."""
    if len(sizes) != len(call.outputs):
        raise damaged(f"{call.name} has {len(call.outputs)} results for {len(sizes)} parts")
    ends = list(accumulate(sizes))
    return tuple(g.b.add(Slice(axis, end - size, end), x) for end, size in zip(ends, sizes, strict=True))


def slice_(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower SLICE; a size of -1 is the rest."""
    x, begin, size = call.x(), g.ints(call.x(1), "the begin of SLICE"), g.ints(call.x(2), "the size of SLICE")
    for axis, (start, count) in enumerate(zip(begin, size, strict=True)):
        whole = g.shape(x)[axis]
        stop = whole if count == -1 else start + count
        if not 0 <= start <= stop <= whole:
            raise CompileError(f"SLICE: {start} to {stop} is not within {whole}")
        x = x if (start, stop) == (0, whole) else g.b.add(Slice(axis, start, stop), x)
    return x


def strided_slice(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower NumPy's x[begin:end:stride, ...]. Each mask has a bit per dimension, which selects: from the start; to
    the end; all dimensions that are not named; a new dimension; a single index."""
    if call.option(Field(5, "B")):
        raise CompileError("STRIDED_SLICE: `offset` is not supported")
    begin, end, stride = (
        g.ints(call.x(i), f"{what} of STRIDED_SLICE") for i, what in enumerate(("begin", "end", "strides"), 1)
    )
    masks = {field: call.option(field) for field in (BEGIN, END, ELLIPSIS, NEW_AXIS, SHRINK)}

    def says(field: Field, i: int) -> bool:
        return bool(masks[field] >> i & 1)

    x, axis, shape = call.x(), 0, list[int]()
    named = sum(not says(ELLIPSIS, i) and not says(NEW_AXIS, i) for i in range(len(begin)))
    for i, (start, stop, step) in enumerate(zip(begin, end, stride, strict=True)):
        if says(ELLIPSIS, i):
            skipped = len(g.shape(x)) - named
            shape += g.shape(x)[axis : axis + skipped]
            axis += skipped
        elif says(NEW_AXIS, i):
            shape.append(1)
        else:
            n = g.shape(x)[axis]
            if says(SHRINK, i):
                start = (0 if step > 0 else n - 1) if says(BEGIN, i) else start
                at = start + n if start < 0 else start
                x = g.b.add(Slice(axis, at, at + 1), x)
            else:
                chosen = range(n)[slice(None if says(BEGIN, i) else start, None if says(END, i) else stop, step)]
                x = _take_range(g, x, axis, chosen)
                shape.append(len(chosen))
            axis += 1
    return g.reshape(x, (*shape, *g.shape(x)[axis:]))


def _take_range(g: TfliteLowering, x: str, axis: int, chosen: range) -> str:
    """Return the elements of an axis in a range; backwards if its step is negative."""
    if chosen == range(g.shape(x)[axis]):
        return x
    if chosen.step < 0:
        return g.b.add(Flip((axis,)), _take_range(g, x, axis, chosen[::-1]))
    return g.b.add(Slice(axis, chosen.start, chosen[-1] + 1 if chosen else chosen.start, chosen.step), x)


def pack(g: TfliteLowering, call: TfliteCall) -> str:
    rank = len(g.shape(call.x())) + 1
    axis = call.option(Field(1))
    axis = axis + rank if axis < 0 else axis
    thin = (g.reshape(x, (*g.shape(x)[:axis], 1, *g.shape(x)[axis:])) for x in call.given())
    return g.b.add(Cat(axis), *thin)


def unpack(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    x = call.x()
    axis = g.axis(x, call.option(Field(1)))
    if g.shape(x)[axis] != len(call.outputs):
        raise damaged(f"UNPACK has {len(call.outputs)} results for {g.shape(x)[axis]:,} parts")
    parts = _parts(g, call, x, axis, [1] * len(call.outputs))
    shape = (*g.shape(x)[:axis], *g.shape(x)[axis + 1 :])
    return tuple(g.reshape(part, shape) for part in parts)


def pad(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower PAD with 0, or PADV2 with a number."""
    value = 0.0
    if call.name == "PADV2":
        value = float(g.constant(call.x(2), "the value of PADV2").reshape(-1)[0])
    return g.b.add(Pad(_sides(g, call), value), call.x())


def _sides(g: TfliteLowering, call: TfliteCall) -> tuple[tuple[int, int], ...]:
    sides = g.ints(call.x(1), f"the padding of {call.name}")
    if len(sides) != 2 * len(g.shape(call.x())) or min(sides, default=0) < 0:
        raise CompileError(f"{call.name}: the padding {list(sides[:8])} does not fit")
    return tuple(zip(sides[::2], sides[1::2], strict=True))


def mirror_pad(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower MIRROR_PAD: REFLECT (0) leaves the element at the border out, SYMMETRIC (1) repeats it."""
    x, symmetric = call.x(), call.option(Field(0, "b")) == 1
    for axis, sides in enumerate(_sides(g, call)):
        if any(sides):
            n = g.shape(x)[axis]
            if max(sides) > n - (not symmetric):
                raise CompileError(f"MIRROR_PAD: {max(sides)} is more than there is to mirror of {n}")
            index = np.arange(n, dtype=np.int32)
            mirrored = np.pad(index, sides, "symmetric" if symmetric else "reflect")
            x = g.b.add(IndexSelect(axis), x, g.b.const("mirror", mirrored))
    return x


def space_to_depth(g: TfliteLowering, call: TfliteCall) -> str:
    n, h, w, c = g.shape(call.x())
    size = _block(call)
    blocks = g.permute(g.reshape(call.x(), (n, h // size, size, w // size, size, c)), (0, 1, 3, 2, 4, 5))
    return g.reshape(blocks, (n, h // size, w // size, size * size * c))


def depth_to_space(g: TfliteLowering, call: TfliteCall) -> str:
    n, h, w, c = g.shape(call.x())
    size = _block(call)
    pixels = g.reshape(call.x(), (n, h, w, size, size, c // (size * size)))
    return g.reshape(g.permute(pixels, (0, 1, 3, 2, 4, 5)), (n, h * size, w * size, c // (size * size)))


def _block(call: TfliteCall) -> int:
    size = call.option(Field(0))
    if size < 1:
        raise CompileError(f"{call.name}: the block size {size} is not positive")
    return size


def space_to_batch(g: TfliteLowering, call: TfliteCall) -> str:
    """Pad with zeros; then the elements at the same place of every block become an image of the batch."""
    x, block = call.x(), g.ints(call.x(1), "the blocks of SPACE_TO_BATCH_ND")
    around = g.ints(call.x(2), "the padding of SPACE_TO_BATCH_ND")
    sides = tuple(zip(around[::2], around[1::2], strict=True))
    rank, m = len(g.shape(x)), len(block)
    x = g.b.add(Pad(((0, 0), *sides, *((0, 0),) * (rank - 1 - m)), 0.0), x)
    batch, *sizes = g.shape(x)
    inner = sizes[m:]
    split = [v for n, b in zip(sizes, block, strict=False) for v in (n // b, b)]
    order = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + len(inner)))
    y = g.permute(g.reshape(x, (batch, *split, *inner)), order)
    return g.reshape(y, (batch * prod(block), *(n // b for n, b in zip(sizes, block, strict=False)), *inner))


def batch_to_space(g: TfliteLowering, call: TfliteCall) -> str:
    x, block = call.x(), g.ints(call.x(1), "the blocks of BATCH_TO_SPACE_ND")
    crops = g.ints(call.x(2), "the crops of BATCH_TO_SPACE_ND")
    m, (batch, *sizes) = len(block), g.shape(x)
    inner = sizes[m:]
    images = g.reshape(x, (*block, batch // prod(block), *sizes))
    pairs = [v for i in range(m) for v in (m + 1 + i, i)]
    y = g.permute(images, (m, *pairs, *range(2 * m + 1, 2 * m + 1 + len(inner))))
    y = g.reshape(y, (batch // prod(block), *(n * b for n, b in zip(sizes, block, strict=False)), *inner))
    for axis, (before, after) in enumerate(zip(crops[::2], crops[1::2], strict=True), 1):
        if before or after:
            y = g.b.add(Slice(axis, before, g.shape(y)[axis] - after), y)
    return y


def gather(g: TfliteLowering, call: TfliteCall) -> str:
    if call.option(Field(1)):
        raise CompileError("GATHER: batch_dims is not supported", need="batch_dims 0")
    x, index = call.x(0), call.x(1)
    return g.b.add(IndexSelect(g.axis(x, call.option(Field(0)))), x, index)


def gather_nd(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower GATHER_ND. The last dimension of the indices has one for each of x's first dimensions."""
    x, index = call.x(0), call.x(1)
    _need_axes(call, g.shape(index)[-1], g.shape(x))
    rows, at = merge_indexed(g, x, index)
    return g.b.add(IndexSelect(0), rows, at)


def scatter_nd(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower SCATTER_ND(indices, updates, shape), which adds updates to zeros. Indices that are known and different
    need no sum, so that all types can be put."""
    index, source = call.x(0), call.x(1)
    if stored_as(call.y) is not None:  # LiteRT fills the result with stored zeros, and adds stored numbers
        raise CompileError("SCATTER_ND of quantized numbers is not supported", need="float32 or plain integers")
    _need_axes(call, g.shape(index)[-1], call.y.shape)
    known = known_value(g, index)
    alone = (
        known is not None and len(np.unique(known.reshape(-1, known.shape[-1]), axis=0)) * known.shape[-1] == known.size
    )
    zeros = g.b.const("zeros", np.zeros(call.y.shape, g[source].dtype.numpy))
    rows, at = merge_indexed(g, zeros, index)
    return g.reshape(g.b.add(IndexPut(0, not alone), rows, at, source), call.y.shape)


def _need_axes(call: TfliteCall, count: int, shape: Sequence[int]) -> None:
    if not 0 < count <= len(shape):
        raise CompileError(f"{call.name}: {count} indices for {len(shape)} dimensions")


def tile(g: TfliteLowering, call: TfliteCall) -> str:
    """Repeat every dimension: insert a new one before it, expand it, and merge both."""
    x, times = call.x(), g.ints(call.x(1), "the multiples of TILE")
    shape = g.shape(x)
    if len(times) != len(shape) or min(times, default=1) < 1:
        raise CompileError(f"TILE: {list(times[:8])} does not fit {list(shape)}")
    thin = [v for n in shape for v in (1, n)]
    wide = [v for n, t in zip(shape, times, strict=True) for v in (t, n)]
    x = g.reshape(x, thin)
    return g.reshape(g.b.add(Expand(tuple(wide)), x) if wide != thin else x, call.y.shape)


def shape(g: TfliteLowering, call: TfliteCall) -> str:
    return g.b.const("shape", np.array(g.shape(call.x()), g.type_of(call.y).numpy))


ROWS: dict[str, TfliteRow] = {
    "RESHAPE": sixteen.move_row(TfliteRow(reshape, (Reshape,))),
    "SQUEEZE": sixteen.move_row(TfliteRow(reshape, (Reshape,))),
    "EXPAND_DIMS": sixteen.move_row(TfliteRow(reshape, (Reshape,))),
    "TRANSPOSE": sixteen.move_row(TfliteRow(transpose, (Permute,))),
    "CONCATENATION": TfliteRow(concatenation, (Cat,), sixteen=concatenation_of_sixteen, zeros=True),
    "SPLIT": sixteen.move_row(TfliteRow(split, (Slice,))),
    "SPLIT_V": sixteen.move_row(TfliteRow(split_v, (Slice,))),
    "SLICE": sixteen.move_row(TfliteRow(slice_, (Slice,))),
    "STRIDED_SLICE": sixteen.move_row(TfliteRow(strided_slice, (Slice, Flip))),
    "PACK": sixteen.move_row(TfliteRow(pack, (Cat,))),
    "UNPACK": sixteen.move_row(TfliteRow(unpack, (Slice,))),
    "PAD": sixteen.move_row(TfliteRow(pad, (Pad,))),
    "PADV2": sixteen.move_row(TfliteRow(pad, (Pad,))),
    "MIRROR_PAD": sixteen.move_row(TfliteRow(mirror_pad, (IndexSelect,))),
    "SPACE_TO_DEPTH": sixteen.move_row(TfliteRow(space_to_depth, (Permute,))),
    "DEPTH_TO_SPACE": sixteen.move_row(TfliteRow(depth_to_space, (Permute,))),
    "SPACE_TO_BATCH_ND": sixteen.move_row(TfliteRow(space_to_batch, (Pad, Permute))),
    "BATCH_TO_SPACE_ND": sixteen.move_row(TfliteRow(batch_to_space, (Permute, Slice))),
    "GATHER": sixteen.move_row(TfliteRow(gather, (IndexSelect,))),
    "GATHER_ND": sixteen.move_row(TfliteRow(gather_nd, (IndexSelect,))),
    "SCATTER_ND": TfliteRow(scatter_nd, (IndexPut,)),
    "EMBEDDING_LOOKUP": TfliteRow(lambda g, call: g.b.add(IndexSelect(0), call.x(1), call.x(0)), (IndexSelect,)),
    "TILE": sixteen.move_row(TfliteRow(tile, (Expand,))),
    "REVERSE_V2": TfliteRow(lambda g, call: g.b.add(Flip(axes_of(g, call, 1)), call.x()), (Flip,)),
    "SHAPE": TfliteRow(shape),
}

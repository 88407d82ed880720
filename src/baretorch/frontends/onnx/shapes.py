"""Rows of the ONNX table: operators that change only shape, order or position."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import constants, moves, shapes
from baretorch.frontends.aten.index import take
from baretorch.frontends.lowering import Ints, Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.math import convert
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ops.layout import Pad

PAD_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}  # as aten's pad calls them


# --- shape and order ----------------------------------------------------------------------------------------


def reshape(g: OnnxLowering, x: str, sizes: str, *, allowzero: int = 0) -> str:
    """Lower Reshape. A 0 keeps the dimension at its place, unless `allowzero`."""
    shape = list(g.ints(sizes, "Reshape: shape"))
    if not allowzero:
        shape = [g.shape(x)[i] if n == 0 else n for i, n in enumerate(shape)]
    known = prod(n for n in shape if n != -1)
    return g.reshape(x, [g[x].count // max(known, 1) if n == -1 else n for n in shape])


def flatten(g: OnnxLowering, x: str, *, axis: int = 1) -> str:
    shape, at = g.shape(x), g.axis(x, axis)
    return g.reshape(x, (prod(shape[:at]), prod(shape[at:])))


def squeeze(g: OnnxLowering, x: str, axes: str | None = None) -> str:
    shape = g.shape(x)
    named = () if axes is None else g.ints(axes, "Squeeze: axes")
    gone = [g.axis(x, a) for a in named] or [i for i, n in enumerate(shape) if n == 1]
    if any(shape[a] != 1 for a in gone):
        raise CompileError("Squeeze: an axis has more than one element", have=str(g[x]), need="axes of 1")
    return g.reshape(x, [n for i, n in enumerate(shape) if i not in gone])


def unsqueeze(g: OnnxLowering, x: str, some: str) -> str:
    axes = g.ints(some, "Unsqueeze: axes")
    rank = len(g.shape(x)) + len(axes)
    new = {a + rank if a < 0 else a for a in axes}
    if len(new) < len(axes) or not new <= set(range(rank)):
        raise CompileError(
            f"Unsqueeze: axes {list(axes)} are not of {rank} dimensions, or one comes twice", have=str(g[x])
        )
    rest = iter(g.shape(x))
    return g.reshape(x, [1 if i in new else next(rest) for i in range(rank)])


def transpose(g: OnnxLowering, x: str, *, perm: Ints = ()) -> str:
    rank = len(g.shape(x))
    dims = tuple(perm) or tuple(reversed(range(rank)))
    return x if dims == tuple(range(rank)) else g.permute(x, dims)


def expand(g: OnnxLowering, x: str, sizes: str) -> str:
    """Broadcast in both directions: the shape may have a 1 where x has more."""
    shape = g.ints(sizes, "Expand: shape")
    try:
        full = np.broadcast_shapes(g.shape(x), shape)
    except ValueError:
        raise CompileError(f"Expand: {list(shape)} does not fit", have=str(g[x])) from None
    return moves.expand(g, x, full)


def tile(g: OnnxLowering, x: str, times: str) -> str:
    """Repeat one axis after the other, because kernels have few loops."""
    repeats = g.ints(times, "Tile: repeats")
    for i, count in enumerate(repeats):
        if count != 1:
            x = moves.repeat(g, x, [count if j == i else 1 for j in range(len(repeats))])
    return x


# --- parts ----------------------------------------------------------------------------------------------------


def concat(g: OnnxLowering, call: OnnxCall) -> str:
    """Concatenate; tensors without elements add nothing."""
    names = [call.need(i) for i in range(len(call.inputs))]
    some = [t for t in names if g[t].count] or names[:1]
    return shapes.cat(g, some, g.axis(names[0], int(call.attribute("axis", 0))))


def split(g: OnnxLowering, x: str, sizes: str | None = None, *, axis: int = 0, call: OnnxCall) -> Result:
    """Split into given sizes, or into equal ones of which the last may be smaller."""
    length = g.shape(x)[g.axis(x, axis)]
    each: Ints = () if sizes is None else g.ints(sizes, "Split: sizes")
    if not each:
        count = int(call.attribute("num_outputs", call.outputs))
        most = -(-length // count)
        each = [max(min(most, length - i * most), 0) for i in range(count)]
    return shapes.split(g, x, each, g.axis(x, axis))


def slice_(g: OnnxLowering, x: str, starts: str, ends: str, axes: str | None = None, steps: str | None = None) -> str:
    """Slice; with a negative step, the part is read backwards."""
    first, last = g.ints(starts, "Slice: starts"), g.ints(ends, "Slice: ends")
    along = g.ints(axes, "Slice: axes") if axes else range(len(first))
    by = g.ints(steps, "Slice: steps") if steps else (1,) * len(first)
    for axis, start, end, step in zip(along, first, last, by, strict=True):
        x = moves.take_range(g, x, g.axis(x, axis), range(g.shape(x)[g.axis(x, axis)])[start:end:step])
    return x


# --- padding --------------------------------------------------------------------------------------------------


def pad(
    g: OnnxLowering,
    x: str,
    sizes: str,
    number: str | None = None,
    axes: str | None = None,
    *,
    mode: str = "constant",
) -> str:
    """Pad; `pads` lists the padding before each of the axes, then the padding after."""
    rank = len(g.shape(x))
    pads = g.ints(sizes, "Pad: pads")
    along = [g.axis(x, a) for a in g.ints(axes, "Pad: axes")] if axes else list(range(rank))
    pairs = [(0, 0)] * rank
    for i, axis in enumerate(along):
        pairs[axis] = (int(pads[i]), int(pads[i + len(along)]))
    if mode == "constant":
        return pad_constant(g, x, pairs, float(g.constant(number, "Pad: the value").reshape(())) if number else 0.0)
    if mode not in PAD_MODES:
        raise CompileError(f"Pad: no mode is called {mode!r}", need=f"constant, {', '.join(PAD_MODES)}")
    return pad_from_inside(g, x, pairs, PAD_MODES[mode])


def pad_constant(g: Lowering, x: str, pairs: list[tuple[int, int]], value: float) -> str:
    return g.b.add(Pad(tuple(pairs), value), x) if any(map(any, pairs)) else x


def pad_from_inside(g: Lowering, x: str, pairs: list[tuple[int, int]], mode: str) -> str:
    flat = [n for pair in reversed(pairs) for n in pair]
    while flat and not any(flat[-2:]):
        flat = flat[:-2]
    return moves.pad(g, x, flat, mode) if flat else x


def center_crop_pad(g: OnnxLowering, x: str, shape: str, *, axes: Ints | None = None) -> str:
    """Crop axes that are too long at both ends, and pad those that are too short with zeros at both. An odd element is
    added or cut at the end."""
    for a, want in zip(axes or range(len(g.shape(x))), g.ints(shape, "CenterCropPad: shape"), strict=True):
        axis = g.axis(x, a)
        have = g.shape(x)[axis]
        if want < have:
            begin = (have - want) // 2
            x = shapes.slice_(g, x, axis, begin, begin + want)
        elif want > have:
            before = (want - have) // 2
            pairs = [(0, 0)] * len(g.shape(x))
            pairs[axis] = (before, want - have - before)
            x = pad_constant(g, x, pairs, 0.0)
    return x


# --- blocks, triangles, order ---------------------------------------------------------------------------------


def depth_to_space(g: OnnxLowering, x: str, *, blocksize: int, mode: str = "DCR") -> str:
    (n, c, h, w), b = g.shape(x), blocksize
    if mode == "DCR":
        parts, dims = g.reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2)
    else:
        parts, dims = g.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3)
    return g.reshape(g.permute(parts, dims), (n, c // b**2, h * b, w * b))


def space_to_depth(g: OnnxLowering, x: str, *, blocksize: int, mode: str = "DCR") -> str:
    (n, c, h, w), b = g.shape(x), blocksize
    parts = g.reshape(x, (n, c, h // b, b, w // b, b))
    dims = (0, 1, 3, 5, 2, 4) if mode == "CRD" else (0, 3, 5, 1, 2, 4)
    return g.reshape(g.permute(parts, dims), (n, c * b**2, h // b, w // b))


def trilu(g: OnnxLowering, x: str, diagonal: str | None = None, *, upper: int = 1) -> str:
    k = g.ints(diagonal, "Trilu: k")[0] if diagonal else 0
    return constants.triu(g, x, k) if upper else constants.tril(g, x, k)


def reverse_sequence(g: OnnxLowering, x: str, lengths: str, *, batch_axis: int = 1, time_axis: int = 0) -> str:
    """Reverse each sequence of the batch separately, up to its length."""
    size, parts = g.shape(x)[time_axis], []
    sequences = shapes.split(g, x, 1, batch_axis)
    for sequence, n in zip(sequences, g.ints(lengths, "ReverseSequence: sequence_lens"), strict=True):
        order = np.concatenate([np.arange(n)[::-1], np.arange(n, size)])
        parts.append(take(g, sequence, time_axis, order))
    return shapes.cat(g, parts, batch_axis)


def dropout(
    g: OnnxLowering, x: str, ratio: str | None = None, training: str | None = None, *, call: OnnxCall
) -> Result:
    """Return the input unchanged, and a mask that says so."""
    trains = training is not None and bool(g.constant(training, "Dropout: training_mode").reshape(()))
    share = 0.5 if ratio is None else g.constant(ratio, "Dropout: ratio").reshape(())
    if trains and share != 0:
        raise CompileError(
            "Dropout is in training mode, so its result is random",
            need="training_mode false",
            try_="export the model after model.eval()",
        )
    return x if call.outputs == 1 else (x, g.b.const("mask", np.ones(g.shape(x), np.bool_)))


def eye_like(g: OnnxLowering, x: str, *, dtype: int | None = None, k: int = 0) -> str:
    rows, columns = g.shape(x)
    unit = constants.add_constant(g, "unit", np.eye(rows, columns, k).astype(g[x].dtype.numpy))
    return unit if dtype is None else convert(g, unit, dtype)


def need_known(*names: str) -> OnnxRow:
    """Make a row for an operator whose result must be known ahead of time. If it is, it was folded before its row is
    called."""

    def build(g: OnnxLowering, call: OnnxCall) -> str:
        for i, name in enumerate(names):
            g.constant(call.need(i), f"{call.op}: {name}")
        raise CompileError(f"{call.op}: its result is too large, or not known before the image is built")

    return OnnxRow(build)


def range_(g: OnnxLowering, *names: str) -> str:
    parts = [g.constant(n, f"Range: {what}") for n, what in zip(names, ("start", "limit", "delta"), strict=True)]
    start, limit, delta = (p.reshape(()) for p in parts)
    if not delta:
        raise CompileError("Range: the step is 0")
    count = max(ceil((float(limit) - float(start)) / float(delta)), 0)
    if count * 8 > ROOM:
        raise too_large(f"Range makes {count:,} numbers")
    return constants.add_constant(g, "range", (start + np.arange(count) * delta).astype(parts[0].dtype))


ROWS: dict[str, OnnxRow] = {
    "Reshape": row(reshape),
    "Flatten": row(flatten),
    "Squeeze": row(squeeze),
    "Unsqueeze": row(unsqueeze),
    "Transpose": row(transpose),
    "Expand": row(expand),
    "Tile": row(tile),
    "Concat": OnnxRow(concat),
    "Split": row(split),
    "Slice": row(slice_),
    "Pad": row(pad),
    "CenterCropPad": row(center_crop_pad),
    "DepthToSpace": row(depth_to_space),
    "SpaceToDepth": row(space_to_depth),
    "Trilu": row(trilu),
    "ReverseSequence": row(reverse_sequence),
    "Identity": row(lambda g, x: x),
    "Dropout": row(dropout),
    "EyeLike": row(eye_like),
    "Range": OnnxRow(lambda g, call: range_(g, *(call.need(i) for i in range(3)))),
    "ConstantOfShape": need_known("shape"),
    "HannWindow": need_known("size"),
    "HammingWindow": need_known("size"),
    "BlackmanWindow": need_known("size"),
    "MelWeightMatrix": need_known("num_mel_bins", "dft_length", "sample_rate", "the lower edge", "the upper edge"),
    "NonZero": need_known("x, which the result's size depends on,"),
    "Unique": need_known("x, which the result's size depends on,"),
}

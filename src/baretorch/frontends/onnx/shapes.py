"""Rows of the ONNX table: operators that change only shape, order or position."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import constants, moves, shapes
from baretorch.frontends.aten.index import take
from baretorch.frontends.lowering import Ints, Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.frontends.onnx.math import convert
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ops.layout import Pad

PAD_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}  # as aten's pad calls them


# --- shape and order ----------------------------------------------------------------------------------------


def reshape(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower Reshape. A 0 keeps the dimension at its place, unless `allowzero`."""
    x = call.need(0)
    shape = list(g.ints(call.need(1), "Reshape: shape"))
    if not call.attribute("allowzero", 0):
        shape = [g.shape(x)[i] if n == 0 else n for i, n in enumerate(shape)]
    known = prod(n for n in shape if n != -1)
    full = [g[x].count // max(known, 1) if n == -1 else n for n in shape]
    return g.reshape(x, full)


def flatten(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    axis = g.axis(x, int(call.attribute("axis", 1)))
    shape = g.shape(x)
    return g.reshape(x, (prod(shape[:axis]), prod(shape[axis:])))


def axes_of(g: OnnxLowering, call: OnnxCall, rank: int) -> tuple[int, ...]:
    """Return the axes from the attribute or the second input, counted from the front."""
    axes = call.attribute("axes", ())
    if call.input(1) is not None:
        axes = g.ints(call.input(1), f"{call.op}: axes")
    return tuple(int(a) + rank if a < 0 else int(a) for a in axes)


def squeeze(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    shape = g.shape(x)
    gone = axes_of(g, call, len(shape)) or [i for i, n in enumerate(shape) if n == 1]
    if any(shape[a] != 1 for a in gone):
        raise CompileError("Squeeze: an axis has more than one element", have=str(g[x]), need="axes of 1")
    return g.reshape(x, [n for i, n in enumerate(shape) if i not in gone])


def unsqueeze(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    axes = call.attribute("axes", ()) or g.ints(call.input(1), "Unsqueeze: axes")
    rank = len(g.shape(x)) + len(axes)
    new = {a + rank if a < 0 else a for a in axes}
    if len(new) < len(axes) or not new <= set(range(rank)):
        raise CompileError(
            f"Unsqueeze: axes {list(axes)} are not of {rank} dimensions, or one comes twice", have=str(g[x])
        )
    rest = iter(g.shape(x))
    return g.reshape(x, [1 if i in new else next(rest) for i in range(rank)])


def transpose(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    rank = len(g.shape(x))
    dims = tuple(call.attribute("perm", ())) or tuple(reversed(range(rank)))
    return x if dims == tuple(range(rank)) else g.permute(x, dims)


def expand(g: OnnxLowering, call: OnnxCall) -> str:
    """Broadcast in both directions: the shape may have a 1 where x has more."""
    x = call.need(0)
    shape = g.ints(call.need(1), "Expand: shape")
    try:
        full = np.broadcast_shapes(g.shape(x), shape)
    except ValueError:
        raise CompileError(f"Expand: {list(shape)} does not fit", have=str(g[x])) from None
    return moves.expand(g, x, full)


def tile(g: OnnxLowering, call: OnnxCall) -> str:
    """Repeat one axis after the other, because kernels have few loops."""
    x = call.need(0)
    repeats = g.ints(call.need(1), "Tile: repeats")
    for i, times in enumerate(repeats):
        if times != 1:
            x = moves.repeat(g, x, [times if j == i else 1 for j in range(len(repeats))])
    return x


# --- parts ----------------------------------------------------------------------------------------------------


def concat(g: OnnxLowering, call: OnnxCall) -> str:
    """Concatenate; tensors without elements add nothing."""
    names = [call.need(i) for i in range(len(call.inputs))]
    some = [t for t in names if g[t].count] or names[:1]
    return shapes.cat(g, some, g.axis(names[0], int(call.attribute("axis", 0))))


def split(g: OnnxLowering, call: OnnxCall) -> Result:
    """Split into given sizes, or into equal ones of which the last may be smaller."""
    x = call.need(0)
    axis = g.axis(x, int(call.attribute("axis", 0)))
    length = g.shape(x)[axis]
    sizes: Ints = call.attribute("split", ())
    if call.input(1) is not None:
        sizes = g.ints(call.input(1), "Split: sizes")
    if not sizes:
        count = int(call.attribute("num_outputs", call.outputs))
        each = -(-length // count)
        sizes = [max(min(each, length - i * each), 0) for i in range(count)]
    return shapes.split(g, x, sizes, axis)


def slice_(g: OnnxLowering, call: OnnxCall) -> str:
    """Slice; with a negative step, the part is read backwards."""
    x = call.need(0)
    starts, ends = g.ints(call.need(1), "Slice: starts"), g.ints(call.need(2), "Slice: ends")
    axes = g.ints(call.input(3), "Slice: axes") if call.input(3) else tuple(range(len(starts)))
    steps = g.ints(call.input(4), "Slice: steps") if call.input(4) else (1,) * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        x = moves.take_range(g, x, g.axis(x, axis), range(g.shape(x)[g.axis(x, axis)])[start:end:step])
    return x


# --- padding --------------------------------------------------------------------------------------------------


def pad(g: OnnxLowering, call: OnnxCall) -> str:
    """Pad; `pads` lists the padding before each of the axes, then the padding after."""
    x = call.need(0)
    rank = len(g.shape(x))
    pads: Ints = call.attribute("pads", ()) or g.ints(call.input(1), "Pad: pads")
    axes = [g.axis(x, a) for a in g.ints(call.input(3), "Pad: axes")] if call.input(3) else list(range(rank))
    pairs = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        pairs[axis] = (int(pads[i]), int(pads[i + len(axes)]))
    mode = call.attribute("mode", "constant")
    if mode != "constant":
        if mode not in PAD_MODES:
            raise CompileError(f"Pad: no mode is called {mode!r}", need=f"constant, {', '.join(PAD_MODES)}")
        return pad_from_inside(g, x, pairs, PAD_MODES[mode])
    value = call.attribute("value", 0.0)
    if call.input(2) is not None:
        value = g.constant(call.input(2), "Pad: the value").reshape(())
    return pad_constant(g, x, pairs, float(value))


def pad_constant(g: Lowering, x: str, pairs: list[tuple[int, int]], value: float) -> str:
    return g.b.add(Pad(tuple(pairs), value), x) if any(map(any, pairs)) else x


def pad_from_inside(g: Lowering, x: str, pairs: list[tuple[int, int]], mode: str) -> str:
    flat = [n for pair in reversed(pairs) for n in pair]
    while flat and not any(flat[-2:]):
        flat = flat[:-2]
    return moves.pad(g, x, flat, mode) if flat else x


def center_crop_pad(g: OnnxLowering, call: OnnxCall) -> str:
    """Crop axes that are too long at both ends, and pad those that are too short with zeros at both. An odd element is
    added or cut at the end."""
    x = call.need(0)
    axes = call.attribute("axes") or range(len(g.shape(x)))
    for axis, want in zip(axes, g.ints(call.need(1), "CenterCropPad: shape"), strict=True):
        axis = g.axis(x, int(axis))
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


def depth_to_space(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    n, c, h, w = g.shape(x)
    b = int(call.attribute("blocksize"))
    if call.attribute("mode", "DCR") == "DCR":
        parts, dims = g.reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2)
    else:
        parts, dims = g.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3)
    return g.reshape(g.permute(parts, dims), (n, c // b**2, h * b, w * b))


def space_to_depth(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    n, c, h, w = g.shape(x)
    b = int(call.attribute("blocksize"))
    parts = g.reshape(x, (n, c, h // b, b, w // b, b))
    dims = (0, 1, 3, 5, 2, 4) if call.attribute("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return g.reshape(g.permute(parts, dims), (n, c * b**2, h // b, w // b))


def trilu(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    k = g.ints(call.input(1), "Trilu: k")[0] if call.input(1) else 0
    return constants.triu(g, x, k) if call.attribute("upper", 1) else constants.tril(g, x, k)


def reverse_sequence(g: OnnxLowering, call: OnnxCall) -> str:
    """Reverse each sequence of the batch separately, up to its length."""
    x = call.need(0)
    lengths = g.ints(call.need(1), "ReverseSequence: sequence_lens")
    batch, time = int(call.attribute("batch_axis", 1)), int(call.attribute("time_axis", 0))
    size = g.shape(x)[time]
    rows = []
    for row, length in zip(shapes.split(g, x, 1, batch), lengths, strict=True):
        order = np.concatenate([np.arange(length)[::-1], np.arange(length, size)])
        rows.append(take(g, row, time, order))
    return shapes.cat(g, rows, batch)


def identity(g: OnnxLowering, call: OnnxCall) -> str:
    return call.need(0)


def dropout(g: OnnxLowering, call: OnnxCall) -> Result:
    """Return the input unchanged, and a mask that says so."""
    x = call.need(0)
    trains = call.input(2) is not None and bool(g.constant(call.input(2), "Dropout: training_mode").reshape(()))
    ratio = 0.5 if call.input(1) is None else g.constant(call.input(1), "Dropout: ratio").reshape(())
    if trains and ratio != 0:
        raise CompileError(
            "Dropout is in training mode, so its result is random",
            need="training_mode false",
            try_="export the model after model.eval()",
        )
    if call.outputs == 1:
        return x
    return x, g.b.const("mask", np.ones(g.shape(x), np.bool_))


def eye_like(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    rows, columns = g.shape(x)
    unit = constants.known(g, "unit", np.eye(rows, columns, int(call.attribute("k", 0))).astype(g[x].dtype.numpy))
    return convert(g, unit, int(call.attribute("dtype"))) if call.attribute("dtype") is not None else unit


def need_known(*names: str) -> OnnxRow:
    """Make a row for an operator whose result must be known ahead of time. If it is, it was folded before its row is
    called."""

    def build(g: OnnxLowering, call: OnnxCall) -> str:
        for i, name in enumerate(names):
            g.constant(call.need(i), f"{call.op}: {name}")
        raise CompileError(f"{call.op}: its result is too large, or not known before the image is built")

    return OnnxRow(build)


def range_(g: OnnxLowering, call: OnnxCall) -> str:
    parts = [g.constant(call.need(i), f"Range: {name}") for i, name in enumerate(("start", "limit", "delta"))]
    start, limit, delta = (p.reshape(()) for p in parts)
    if not delta:
        raise CompileError("Range: the step is 0")
    count = max(ceil((float(limit) - float(start)) / float(delta)), 0)
    if count * 8 > ROOM:
        raise too_large(f"Range makes {count:,} numbers")
    return constants.known(g, "range", (start + np.arange(count) * delta).astype(parts[0].dtype))


ROWS: dict[str, OnnxRow] = {
    "Reshape": OnnxRow(reshape),
    "Flatten": OnnxRow(flatten),
    "Squeeze": OnnxRow(squeeze),
    "Unsqueeze": OnnxRow(unsqueeze),
    "Transpose": OnnxRow(transpose),
    "Expand": OnnxRow(expand),
    "Tile": OnnxRow(tile),
    "Concat": OnnxRow(concat),
    "Split": OnnxRow(split),
    "Slice": OnnxRow(slice_),
    "Pad": OnnxRow(pad),
    "CenterCropPad": OnnxRow(center_crop_pad),
    "DepthToSpace": OnnxRow(depth_to_space),
    "SpaceToDepth": OnnxRow(space_to_depth),
    "Trilu": OnnxRow(trilu),
    "ReverseSequence": OnnxRow(reverse_sequence),
    "Identity": OnnxRow(identity),
    "Dropout": OnnxRow(dropout),
    "EyeLike": OnnxRow(eye_like),
    "Range": OnnxRow(range_),
    "ConstantOfShape": need_known("shape"),
    "HannWindow": need_known("size"),
    "HammingWindow": need_known("size"),
    "BlackmanWindow": need_known("size"),
    "MelWeightMatrix": need_known("num_mel_bins", "dft_length", "sample_rate", "the lower edge", "the upper edge"),
    "NonZero": need_known("x, which the result's size depends on,"),
    "Unique": need_known("x, which the result's size depends on,"),
}

"""The operations of Ethos-U85. One may pass its output to the next through an internal buffer (a chain)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baretorch.machines.npu.arithmetic import (
    RoundingMode,
    convolve_depthwise,
    convolve_exactly,
    max_windows,
    scale,
    sum_windows,
    taps,
    wrap,
)
from baretorch.machines.npu.commands import Do, Set
from baretorch.machines.npu.core import (
    SCALE_BYTES,
    NpuCore,
    interpolate,
    leading_zeros,
    read_lookup_table,
    read_stream,
    read_window,
)
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import (
    IFM,
    IFM2,
    OFM,
    BlockShape,
    FeatureMap,
    Int64s,
    element,
    ofm_shape,
    surface,
    window,
    zero_point,
)
from baretorch.machines.npu.u55 import average
from baretorch.machines.npu.weights import LayerShape, decode_weights

BILINEAR, REPLICATE, NEAREST = range(3)  # the ways to resize
TILES, CHAINED, NOWHERE = 0, 2, 3  # the storage of a feature map
RESET, KEEP, FROM_IFM2 = range(3)  # what accumulators begin with
MICROBLOCKS = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 16}  # how many pixels are worked on at once
TRANSPOSED = {0: (0, 1, 2), 1: (1, 0, 2), 2: (0, 2, 1), 3: (1, 2, 0), 6: (2, 0, 1), 7: (2, 1, 0)}  # axes of an output
REVERSED = {1: 0, 2: 1, 3: 2}  # the axis
ROUNDINGS = {
    0: RoundingMode.DOUBLE,
    1: RoundingMode.NATURAL,
    2: RoundingMode.DOUBLE_ASYMMETRIC,
    3: RoundingMode.SYMMETRIC,
    4: RoundingMode.TO_ZERO,
    5: RoundingMode.DOWN,
}

MAX, AVERAGE, REDUCE_SUM, SUM, NONE, MIN, ARGMAX_X, ARGMAX_Y = range(8)
MUL, ADD, SUB, MINIMUM, MAXIMUM, LRELU, ABS, CLZ, SHR, SHL, LSR, DIV = range(12)
CMP_EQ, CMP_NE, CMP_GE, CMP_GT = range(16, 20)
AND, OR, XOR, NOT, AND_NOT = 33, 34, 35, 36, 42

Pair = Callable[[Int64s, Int64s], Int64s]

ALONE: dict[int, Callable[[Int64s], Int64s]] = {ABS: np.abs, CLZ: leading_zeros, NOT: np.invert}

PAIRS: dict[int, Pair] = {
    MUL: lambda a, b: a * b,
    ADD: lambda a, b: a + b,
    SUB: lambda a, b: a - b,
    MINIMUM: np.minimum,
    MAXIMUM: np.maximum,
    SHL: lambda a, b: wrap(a << np.clip(b, 0, 63), 32),
    LSR: lambda a, b: wrap((a & 0xFFFFFFFF) >> np.clip(b, 0, 62), 32),
    DIV: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1)),
    CMP_EQ: lambda a, b: -(a == b).astype(np.int64),  # all bits set
    CMP_NE: lambda a, b: -(a != b).astype(np.int64),
    CMP_GE: lambda a, b: -(a >= b).astype(np.int64),
    CMP_GT: lambda a, b: -(a > b).astype(np.int64),
    AND: np.bitwise_and,
    OR: np.bitwise_or,
    XOR: np.bitwise_xor,
    AND_NOT: lambda a, b: a & ~b,
}

LUT = {  # by activation function: type and number of the table's entries, and whether its index has 16 bits
    1: ("u1", 256, False),
    4: ("i1", 256, False),
    5: ("<i2", 256, False),
    7: ("<i4", 256, False),
    8: ("<i2", 1024, True),
    9: ("<i2", 1024, True),
}
LUT_S16_S32 = 9
LUT_U8 = 1


def run(core: NpuCore, what: Do, parameter: int) -> None:
    """Run one operation that computes an output, or keeps its accumulators for the next operation."""
    if what in (Do.CONV, Do.DEPTHWISE):
        y = _convolution(core, what is Do.DEPTHWISE, bool(parameter))
    elif what is Do.POOL:
        y = _pool(core, parameter)
    elif what is Do.RESIZE:
        y = _scale_output(core, _resize(core, parameter) << 16)
    else:
        y = _elementwise(core, parameter)
    if y is not None:
        _write(core, _activate(core, y))


def _storage(core: NpuCore, names: FeatureMap) -> int:
    return core.registers.bits(names.register("PRECISION"), 14, 2)


def _input(core: NpuCore, names: FeatureMap, broadcast: Set, out: BlockShape) -> Int64s:
    """Read an input of an elementwise operation and subtract its zero point. NumPy broadcasts it."""
    r = core.registers
    word = r[broadcast]
    kind = element(r, names)
    zero = zero_point(r, names, kind)
    if word & 8:
        value = r.second(Set.OP_SCALAR)
        return np.full((1, 1, 1), wrap(np.array(value), 32) - zero, np.int64)
    if _storage(core, names) == CHAINED:
        return _read_chained(core, names) - zero
    shape = (1 if word & 1 else out[0], 1 if word & 2 else out[1], 1 if word & 4 else out[2])
    return core.memory.read(surface(r, names), shape) - zero


def _read_chained(core: NpuCore, names: FeatureMap) -> Int64s:
    number = core.registers[names.register("REGION")]
    if number not in core.chained:
        raise NpuFault(FaultKind.STRICT, f"{names.name} comes from chain buffer {number}, which was never filled")
    return core.chained[number]


def _write(core: NpuCore, y: Int64s) -> None:
    r = core.registers
    storage = _storage(core, OFM)
    if storage == CHAINED:
        core.chained[r[Set.OFM_REGION]] = y
        return
    core.chained.clear()
    if storage != TILES:
        raise NpuFault(FaultKind.MODEL, f"an output stored in the way {storage}")
    turn, back = r.bits(Set.OFM_PRECISION, 11, 3), r.bits(Set.OFM_PRECISION, 9, 2)
    if turn not in TRANSPOSED:
        raise NpuFault(FaultKind.PARSE, f"invalid order of axes: {turn}")
    if back:
        y = np.flip(y, REVERSED[back])
    core.memory.write(surface(r, OFM), y.transpose(TRANSPOSED[turn]))


def _finish(core: NpuCore, total: Int64s, join: Pair = np.add) -> Int64s | None:
    """Join accumulators with their initial values and scale them; None if the next operation continues with them."""
    r = core.registers
    begin = r.bits(Set.ACC_FORMAT, 4, 2)
    if begin == KEEP:
        if core.sums is None or core.sums.shape != total.shape:
            raise NpuFault(FaultKind.STRICT, "accumulators continue with values that no operation wrote")
        total = join(total, core.sums)
    elif begin == FROM_IFM2:
        kind = element(r, IFM2)
        total = total + core.memory.read(surface(r, IFM2), _shape(total)) - zero_point(r, IFM2, kind)
    core.sums = None
    if r.bits(Set.ACC_FORMAT, 6, 1):
        core.sums = total
        return None
    return _scale_output(core, total)


def _shape(values: Int64s) -> BlockShape:
    height, width, depth = values.shape
    return height, width, depth


def _rounding(core: NpuCore) -> RoundingMode:
    number = core.registers.bits(Set.OFM_SCALE, 13, 3)
    if number not in ROUNDINGS:
        raise NpuFault(FaultKind.PARSE, f"invalid rounding {number}")
    return ROUNDINGS[number]


def _scale_output(core: NpuCore, total: Int64s) -> Int64s:
    """Add the bias, and scale, as OFM_PRECISION says by one factor or by one for each channel."""
    r = core.registers
    how = _rounding(core)
    if r.bits(Set.OFM_SCALE, 6, 5):
        raise NpuFault(FaultKind.MODEL, "an output that is rounded a second time")
    if r.bits(Set.OFM_PRECISION, 8, 1):
        return scale(total, r.second(Set.OFM_SCALE), r.bits(Set.OFM_SCALE, 0, 6), how)
    bias, factor, shift = _channels(core, total.shape[2])
    return scale(total + bias, factor, shift, how)


def _channels(core: NpuCore, depth: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return bias, factor and shift of each channel."""
    data = read_stream(core, Set.SCALE_REGION, Set.SCALE_BASE, Set.SCALE_LENGTH, "the scales")
    if len(data) < depth * SCALE_BYTES:
        raise NpuFault(FaultKind.PARSE, f"there are {len(data)} bytes of scales, for {depth} channels")
    rows = np.frombuffer(data, np.uint8)[: depth * SCALE_BYTES].reshape(depth, SCALE_BYTES).astype(np.int64)
    split = 6 if core.registers.bits(Set.ACC_FORMAT, 0, 2) else 4  # accumulators of 48 bits, or of 32
    zeros = np.zeros(depth, np.int64)
    bias = sum((rows[:, i] << (8 * i) for i in range(split)), zeros)
    factor = sum((rows[:, i] << (8 * (i - split)) for i in range(split, 8)), zeros)
    return wrap(bias, 8 * split), factor & ((1 << (8 * (8 - split) - 1)) - 1), rows[:, 8] & 0x3F


def _convolution(core: NpuCore, depthwise: bool, dynamic: bool) -> Int64s | None:
    r = core.registers
    out, w = ofm_shape(r), window(r)
    x = read_window(core, IFM, w, out, out[2] if depthwise else r[Set.IFM_DEPTH_M1] + 1)
    if dynamic:
        if (w.height, w.width) != (1, 1):
            raise NpuFault(FaultKind.MODEL, "a kernel of more than one element that is computed")
        y = core.memory.read(surface(r, IFM2), (1, out[2], x.shape[2])) - zero_point(r, IFM2, element(r, IFM2))
        return _finish(core, convolve_exactly(x, y.reshape(out[2], 1, 1, x.shape[2]), w, out))
    form = r[Set.WEIGHT_FORMAT]
    pixels = MICROBLOCKS.get(r.bits(Set.ACC_FORMAT, 8, 3))
    if pixels is None:
        raise NpuFault(FaultKind.PARSE, "ACC_FORMAT names no block")
    layer = LayerShape(
        out[2],
        1 if depthwise else x.shape[2],
        w,
        r[Set.OFM_BLK_DEPTH_M1] + 1,
        element(r, IFM).size == 2,
        depthwise,
        fast=bool(form & 1),
        sparse=bool(form >> 4),
        unit=core.accelerator.macs // (8 * pixels),
    )
    names = (
        (Set.WEIGHT_BASE, Set.WEIGHT_LENGTH),
        (Set.WEIGHT1_BASE, Set.WEIGHT1_LENGTH),
        (Set.WEIGHT2_BASE, Set.WEIGHT2_LENGTH),
        (Set.WEIGHT3_BASE, Set.WEIGHT3_LENGTH),
    )[: 1 if layer.fast else core.accelerator.cores]
    streams = tuple(read_stream(core, Set.WEIGHT_REGION, base, length, "the weights") for base, length in names)
    weights = decode_weights(core.accelerator, layer, streams)
    return _finish(core, convolve_depthwise(x, weights, w, out) if depthwise else convolve_exactly(x, weights, w, out))


def _pool(core: NpuCore, mode: int) -> Int64s | None:
    r = core.registers
    out = ofm_shape(r)
    if mode == NONE:
        return _finish(core, np.zeros(out, np.int64))
    w = window(r)
    if mode == REDUCE_SUM:
        if out[2] != 1:
            raise NpuFault(FaultKind.PARSE, f"a sum over channels has {out[2]} of them")
        x = read_window(core, IFM, w, out, r[Set.IFM_DEPTH_M1] + 1)
        return _finish(core, sum_windows(x.sum(2, keepdims=True), w, out)[0])
    x = read_window(core, IFM, w, out, out[2])
    if mode == MAX:
        return _finish(core, max_windows(x, w, out), np.maximum)
    if mode == MIN:
        return _finish(core, -max_windows(-x, w, out), np.minimum)
    if mode in (ARGMAX_X, ARGMAX_Y):
        seen = np.stack([each for _, _, each in taps(x, w, out, 0)])
        return _finish(core, np.argmax(seen, 0) << 16)
    total, count = sum_windows(x, w, out)
    return _finish(core, average(total, count) if mode == AVERAGE else total)


def _elementwise(core: NpuCore, mode: int) -> Int64s:
    """Scale both operands, and the result."""
    r = core.registers
    out = ofm_shape(r)
    x = _input(core, IFM, Set.IFM_BROADCAST, out)
    a = np.zeros(out, np.int64) + _operand(core, x, Set.IFM_SCALE)
    if mode == LRELU:
        return _scale_output(core, np.where(a < 0, _operand(core, x, Set.IFM2_SCALE), a))
    if mode in ALONE:
        return _scale_output(core, ALONE[mode](a))
    b = np.zeros(out, np.int64) + _operand(core, _input(core, IFM2, Set.IFM2_BROADCAST, out), Set.IFM2_SCALE)
    if mode == SHR:
        return scale(a, 1, np.clip(b, 0, 62), _rounding(core))
    if mode not in PAIRS:
        raise NpuFault(FaultKind.PARSE, f"invalid elementwise operation {mode}")
    return _scale_output(core, PAIRS[mode](a, b))


def _operand(core: NpuCore, values: Int64s, name: Set) -> Int64s:
    """Scale an operand."""
    r = core.registers
    if r.bits(name, 6, 5):
        raise NpuFault(FaultKind.MODEL, f"{name.name} that rounds a second time")
    how = RoundingMode.NATURAL if r.bits(name, 13, 1) else RoundingMode.DOUBLE
    return scale(values, r.second(name), r.bits(name, 0, 6), how)


def _activate(core: NpuCore, y: Int64s) -> Int64s:
    """Add the zero point, clamp, and apply the table."""
    r = core.registers
    kind = element(r, OFM)
    function = r.bits(Set.ACTIVATION, 0, 5)
    y = y + zero_point(r, OFM, kind)
    if not r.bits(Set.ACTIVATION, 12, 1):
        low = r.signed(Set.ACTIVATION_MIN)
        y = np.clip(y, low, r.signed(Set.ACTIVATION_MAX, low < 0))
    if function:
        y = _look_up(core, y, function)
    return wrap(y, 8 * kind.size) if kind.size > 2 else np.clip(y, kind.low, kind.high)


def _look_up(core: NpuCore, y: Int64s, function: int) -> Int64s:
    if function not in LUT:
        raise NpuFault(FaultKind.MODEL, f"the activation function {function}, which Baretorch never uses")
    kind, count, wide = LUT[function]
    size = np.dtype(kind).itemsize * count
    entries = read_lookup_table(
        core, core.accelerator.lut + core.registers.bits(Set.ACTIVATION, 5, 3) * size, kind, count
    )
    if wide:
        found = interpolate(entries, np.clip(y, -32768, 32767))
        return found if function == LUT_S16_S32 else (found + 64) >> 7
    return entries[np.clip(y, 0, 255) if function == LUT_U8 else np.clip(y, -128, 127) + 128]


def _places(count: int, n: int, step: int, offset: int, size: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return for each output along an axis the two nearest inputs, and its distance from the first in n-ths."""
    at = np.arange(count) * step + offset
    first, past = at // n, at % n
    return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), past


def _axis(
    core: NpuCore, count: int, scale: Set, step: Set, offset: Set, size: int
) -> tuple[Int64s, Int64s, Int64s, int]:
    r = core.registers
    n = r[scale] + 1
    whole, rest = r.bits(step, 0, 4), r.second(step) & 0x7FF
    begin = r[offset] - (0x1000 if r[offset] & 0x800 else 0)
    return *_places(count, n, whole * n + rest, begin, size), n


def _resize(core: NpuCore, mode: int) -> Int64s:
    """Resize an image. Interpolated pixels are too large by the number of parts between four of them."""
    r = core.registers
    out = ofm_shape(r)
    height, width = r[Set.KERNEL_HEIGHT_M1] + 1, r[Set.KERNEL_WIDTH_M1] + 1
    where = surface(r, IFM)
    x = core.memory.read(where, (height, width, out[2])) - zero_point(r, IFM, where.element)
    y0, y1, py, ny = _axis(core, out[0], Set.RESIZE_Y_SCALE_N_M1, Set.RESIZE_Y, Set.RESIZE_Y_OFFSET, height)
    x0, x1, px, nx = _axis(core, out[1], Set.RESIZE_X_SCALE_N_M1, Set.RESIZE_X, Set.RESIZE_X_OFFSET, width)
    if mode == NEAREST:
        return x[np.where(2 * py >= ny, y1, y0)[:, None], np.where(2 * px >= nx, x1, x0)[None, :]]
    if mode == REPLICATE:
        return x[y0[:, None], x0[None, :]]
    if mode != BILINEAR:
        raise NpuFault(FaultKind.PARSE, f"invalid way to resize: {mode}")
    a, b = py[:, None, None], px[None, :, None]
    upper: Int64s = x[y0][:, x0] * (nx - b) + x[y0][:, x1] * b
    lower: Int64s = x[y1][:, x0] * (nx - b) + x[y1][:, x1] * b
    mixed: Int64s = upper * (ny - a) + lower * a
    return mixed

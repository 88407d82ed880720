"""The operations of Ethos-U55 and U65."""

from __future__ import annotations

import numpy as np

from baretorch.machines.npu.arithmetic import (
    RoundingMode,
    convolve_depthwise,
    convolve_exactly,
    max_windows,
    reciprocal,
    scale,
    sum_windows,
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
from baretorch.machines.npu.memory import INTERNAL
from baretorch.machines.npu.registers import (
    IFM,
    IFM2,
    OFM,
    POINT,
    BlockShape,
    Element,
    Int64s,
    element,
    ofm_shape,
    surface,
    window,
    zero_point,
)
from baretorch.machines.npu.weights import LayerShape, decode_weights

TABLE_BYTES = 2048
SLOT_BYTES = 256
FIRST_TABLE = 16  # number of an activation function
NO_FUNCTION = (0, 1)  # none, and the limits alone
ROUNDINGS = {0: RoundingMode.DOUBLE, 1: RoundingMode.TO_ZERO, 2: RoundingMode.NATURAL}

MAX, AVERAGE, REDUCE_SUM = range(3)
MUL, ADD, SUB, MIN, MAXIMUM, LRELU, ABS, CLZ, SHR, SHL = range(10)


def run(core: NpuCore, what: Do, parameter: int) -> None:
    """Run one operation that computes an output."""
    invalidate_tables(core)
    if what in (Do.CONV, Do.DEPTHWISE):
        y = _convolution(core, what is Do.DEPTHWISE)
    elif what is Do.POOL:
        y = _pool(core, parameter)
    else:
        y = _elementwise(core, parameter)
    core.memory.write(surface(core.registers, OFM), _activate(core, y))


def invalidate_tables(core: NpuCore) -> None:
    """Invalidate the tables of the smallest NPUs, which have accumulators there unless an operation uses a table."""
    if core.accelerator.macs <= 64 and core.registers.bits(Set.ACTIVATION, 0, 5) < FIRST_TABLE:
        core.memory.forget(INTERNAL, core.accelerator.lut, TABLE_BYTES)


def _convolution(core: NpuCore, depthwise: bool) -> Int64s:
    r = core.registers
    out, w = ofm_shape(r), window(r)
    x = read_window(core, IFM, w, out, out[2] if depthwise else r[Set.IFM_DEPTH_M1] + 1)
    wide = element(r, IFM).size == 2
    layer = LayerShape(out[2], 1 if depthwise else x.shape[2], w, r[Set.OFM_BLK_DEPTH_M1] + 1, wide, depthwise)
    streams = [read_stream(core, Set.WEIGHT_REGION, Set.WEIGHT_BASE, Set.WEIGHT_LENGTH, "the weights")]
    if core.accelerator.cores == 2:
        streams.append(
            read_stream(core, Set.WEIGHT_REGION, Set.WEIGHT1_BASE, Set.WEIGHT1_LENGTH, "the weights of core 1")
        )
    weights = decode_weights(core.accelerator, layer, tuple(streams))
    total = convolve_depthwise(x, weights, w, out) if depthwise else convolve_exactly(x, weights, w, out)
    return _scale_output(core, total)


def _scale_output(core: NpuCore, total: Int64s) -> Int64s:
    """Add the bias, and scale as OFM_PRECISION says."""
    r = core.registers
    how = _rounding(r.bits(Set.OFM_PRECISION, 14, 2))
    if r.bits(Set.OFM_PRECISION, 8, 1):
        return scale(total, r.second(Set.OFM_SCALE), r.bits(Set.OFM_SCALE, 0, 6), how)
    bias, factor, shift = _channels(core, total.shape[2])
    return scale(total + bias, factor, shift, how)


def _channels(core: NpuCore, depth: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return bias, factor and shift of each channel; cores take channels in turn."""
    names = [(Set.SCALE_BASE, Set.SCALE_LENGTH), (Set.SCALE1_BASE, Set.SCALE1_LENGTH)][: core.accelerator.cores]
    made = np.zeros((depth, SCALE_BYTES), np.uint8)
    for i, (base, length) in enumerate(names):
        rows = made[i :: len(names)]
        data = read_stream(core, Set.SCALE_REGION, base, length, "the scales")
        if len(data) < rows.size:
            raise NpuFault(FaultKind.PARSE, f"there are {len(data)} bytes of scales, for {len(rows)} channels")
        rows[:] = np.frombuffer(data, np.uint8)[: rows.size].reshape(rows.shape)
    wide = made.astype(np.int64)
    bias = sum((wide[:, i] << (8 * i) for i in range(5)), np.zeros(depth, np.int64))
    factor = sum((wide[:, 5 + i] << (8 * i) for i in range(4)), np.zeros(depth, np.int64))
    return wrap(bias, 40), factor, wide[:, 9] & 0x3F


def _pool(core: NpuCore, mode: int) -> Int64s:
    r = core.registers
    out, w = ofm_shape(r), window(r)
    if mode == REDUCE_SUM:
        if out[2] != 1:
            raise NpuFault(FaultKind.PARSE, f"a sum over channels has {out[2]} of them")
        x = read_window(core, IFM, w, out, r[Set.IFM_DEPTH_M1] + 1)
        return _scale_output(core, sum_windows(x.sum(2, keepdims=True), w, out)[0])
    x = read_window(core, IFM, w, out, out[2])
    if mode == MAX:
        return _scale_output(core, max_windows(x, w, out))
    if mode != AVERAGE:
        raise NpuFault(FaultKind.PARSE, f"invalid pool {mode}")
    total, count = sum_windows(x, w, out)
    if w.top or w.left or w.bottom or w.right:
        return average(total, count)
    return _scale_output(core, total)


def average(total: Int64s, count: Int64s) -> Int64s:
    """Divide the sums of windows that are not all of one size."""
    most = int(count.max())
    pairs = np.array([reciprocal(max(n, 1)) for n in range(most + 1)], np.int64)[count]
    return scale(total, pairs[..., 0], pairs[..., 1], RoundingMode.NATURAL)


def _elementwise(core: NpuCore, mode: int) -> Int64s:
    r = core.registers
    out = ofm_shape(r)
    a = read_window(core, IFM, POINT, out, out[2])
    if mode in (ABS, CLZ):
        return _scale_output(core, np.abs(a)) if mode == ABS else leading_zeros(a)
    if mode == LRELU:
        raise NpuFault(FaultKind.MODEL, "a leaky ReLU of a U55, which Baretorch never uses")
    b = _second(core, out)
    reversed_ = bool(r.bits(Set.IFM2_BROADCAST, 6, 1))
    if reversed_:
        a, b = b, a
    if mode in (ADD, SUB):
        a, b = _operands(core, a, b)
        return _scale_output(core, a + b if mode == ADD else a - b)
    if mode == MUL:
        return _scale_output(core, a * b)
    if mode in (MIN, MAXIMUM):
        return np.minimum(a, b) if mode == MIN else np.maximum(a, b)
    if mode == SHL:
        return wrap(a << np.clip(b, 0, 63), 32)
    if mode == SHR:
        how = _rounding(r.bits(Set.OFM_PRECISION, 14, 2))
        return scale(a, 1, np.clip(b, 0, 62), how if how is RoundingMode.NATURAL else RoundingMode.DOWN)
    raise NpuFault(FaultKind.PARSE, f"invalid elementwise operation {mode}")


def _second(core: NpuCore, out: BlockShape) -> Int64s:
    """Read the second input and subtract its zero point. NumPy broadcasts it."""
    r = core.registers
    word = r[Set.IFM2_BROADCAST]
    kind = element(r, IFM2)
    zero = zero_point(r, IFM2, kind)
    if word >> 7 & 1:
        return np.full((1, 1, 1), r.signed(Set.IFM2_SCALAR, kind.signed) - zero, np.int64)
    shape = (1 if word & 1 else out[0], 1 if word & 2 else out[1], 1 if word & 4 else out[2])
    return core.memory.read(surface(r, IFM2), shape) - zero


def _operands(core: NpuCore, a: Int64s, b: Int64s) -> tuple[Int64s, Int64s]:
    """Return the operands of a sum in one scale."""
    r = core.registers
    mode = r.bits(Set.IFM_PRECISION, 8, 2)
    factor, shift = r.second(Set.OPA_SCALE), r.bits(Set.OPA_SCALE, 0, 6)
    if mode == 0:
        return a * (factor & 0xFFFF), b * (r.second(Set.OPB_SCALE) & 0xFFFF)
    how = _rounding(r.bits(Set.IFM_PRECISION, 14, 2))
    left = 19 if element(r, IFM).size == 1 else 14
    if mode == 1:
        return scale(a, factor, shift, how), b << left
    if mode == 2:
        return a << left, scale(b, factor, shift, how)
    raise NpuFault(FaultKind.PARSE, f"invalid scaling of operands: {mode}")


def _rounding(number: int) -> RoundingMode:
    if number not in ROUNDINGS:
        raise NpuFault(FaultKind.PARSE, f"invalid rounding {number}")
    return ROUNDINGS[number]


def _activate(core: NpuCore, y: Int64s) -> Int64s:
    """Add the zero point, clamp, and apply the table."""
    r = core.registers
    kind = element(r, OFM)
    function, clip = r.bits(Set.ACTIVATION, 0, 5), r.bits(Set.ACTIVATION, 12, 3)
    y = y + zero_point(r, OFM, kind)
    limits = {0: kind, 2: Element(1, False), 3: Element(1, True), 5: Element(2, True)}
    if clip not in limits:
        raise NpuFault(FaultKind.PARSE, f"invalid range of an output: {clip}")
    if clip or kind.size < 4:
        ends = limits[clip]
        low, high = r.signed(Set.ACTIVATION_MIN, ends.signed), r.signed(Set.ACTIVATION_MAX, ends.signed)
        y = np.clip(y, max(low, ends.low), min(high, ends.high))
    if function >= FIRST_TABLE:
        return _look_up(core, y, kind, function - FIRST_TABLE)
    if function not in NO_FUNCTION:
        raise NpuFault(FaultKind.MODEL, f"the activation function {function}, which Baretorch never uses")
    return wrap(y, 32) if kind.size == 4 else y


def _look_up(core: NpuCore, y: Int64s, kind: Element, slot: int) -> Int64s:
    at = core.accelerator.lut + slot * SLOT_BYTES
    if kind.size == 2:
        return (interpolate(read_lookup_table(core, at, "<i2", 1024), y) + 64) >> 7
    values = read_lookup_table(core, at, ("<i4" if kind.size == 4 else "i1" if kind.signed else "u1"), 256)
    return values[np.clip(y, -128, 127) + 128 if kind.signed else np.clip(y, 0, 255)]

"""litert_lstm: an LSTM of a file that LiteRT's converter quantized, in LiteRT's arithmetic. See docs/arithmetic.md.

A recurrent network passes rounding errors on and mostly amplifies them: an LSTM that is only close to LiteRT's differs
by several steps after a dozen times. Therefore this one is equal, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Quant, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, fields_of, has_constants, pack_inputs
from baretorch.ops.int8.gates import GATE_BITS, clip_to_int16, half_up
from baretorch.ops.int8.litert import away, scaled
from baretorch.ops.int8.qrecurrent import add_state, int_output, last_time, recurrent
from baretorch.ops.int8.quantize import FromFixed
from baretorch.ops.int8.rules import Walk, fits_32_bits
from baretorch.ops.packing import dsp
from baretorch.ops.recurrent import Cell, Lstm, OverTime, extents
from baretorch.targets.features import DSP

GATES = 4
UNIT_BITS = 15  # fractional bits of the results of sigmoid and tanh
LITERT_CELL_BITS = range(9, 16)  # fractional bits of a cell that LiteRT has a tanh for
FACTORS = (25520, 19875, 12055, 4435, 600, 11)  # e^-1/4, e^-1/2, e^-1, ..., with 15 fractional bits


@dataclass(frozen=True)
class LiteRtLstm(OverTime, name="litert_lstm", last_weight=4):
    """x int8[T, N, I], h int8[N, H], c int16[N, H], w_ih int8[4 H, I], w_hh int8[4 H, H], biases int32[4 H, 2], scales
    int32[4, 4] -> y int8[T, N, H], c int16[N, H].

    `biases` has those for the input and for the hidden state, with zero points folded in. `scales` has for each gate
    multiplier and shift for the input's sums, then for the hidden state's; `multiplier` and `shift` are those of the
    output, whose last time is the hidden state at the end.
    """

    cell: Cell
    zero: int
    multiplier: int
    shift: int
    batch_first: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, hidden = inputs[0], inputs[4].shape[-1]
        time, batch = self.extent(x)
        rows = GATES * hidden
        wanted = [(batch, hidden), (batch, hidden), (rows, x.shape[-1]), (rows, hidden), (rows, 2), (GATES, 4)]
        types = [DType.INT8, DType.INT8, DType.INT16, DType.INT8, DType.INT8, DType.INT32, DType.INT32]
        need(
            len(x.shape) == 3
            and time > 0
            and self.cell.bits in LITERT_CELL_BITS
            and [t.shape for t in inputs[1:]] == wanted
            and [t.dtype for t in inputs] == types,
            self,
            "the inputs are not those of LiteRT's LSTM",
            inputs,
            "x int8[T, N, I], h int8[N, H], c int16[N, H], int8 weights, int32 biases and scales",
        )
        return (Signature((*x.shape[:2], hidden), DType.INT8), Signature((batch, hidden), DType.INT16))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, h, c, w_ih, w_hh, biases, scales = (i.astype(np.int64) for i in inputs)
        if self.batch_first:
            x = x.swapaxes(0, 1)
        by_row = np.repeat(scales, w_hh.shape[1], axis=0).T
        y = np.empty((*x.shape[:2], w_hh.shape[1]), np.int8)
        for t in range(len(x)):
            from_x = clip_to_int16(scaled(x[t] @ w_ih.T + biases[:, 0], by_row[0], by_row[1]))
            from_h = scaled(h @ w_hh.T + biases[:, 1], by_row[2], by_row[3])
            i, f, g, o = np.split(clip_to_int16(from_x + from_h), GATES, axis=1)
            added = away(sigmoid(i) * tanh(g, GATE_BITS), 2 * UNIT_BITS - self.cell.bits)
            c = np.clip(away(sigmoid(f) * c, UNIT_BITS) + added, self.cell.lo, self.cell.hi)
            h = scaled(sigmoid(o) * tanh(c, self.cell.bits), np.array(self.multiplier), np.array(self.shift))
            y[t] = h = np.clip(h + self.zero, -128, 127)
        return (y.swapaxes(0, 1) if self.batch_first else y, c.astype(np.int16))


def sigmoid(v: Array) -> Array:
    """Return the sigmoid, with 15 fractional bits, of numbers with 12."""
    y = np.minimum(2 * _reciprocal(_exp(np.abs(v), GATE_BITS)), 32767)
    return np.asarray(np.where(v == 0, 16384, np.where(v < 0, 32767 - y, y)))


def tanh(v: Array, bits: int) -> Array:
    """Return tanh, with 15 fractional bits, of numbers with `bits` fractional bits."""
    y = np.minimum(4 * (_reciprocal(_exp(np.abs(v), bits - 1)) - 8192), 32767)
    return np.asarray(np.sign(v) * y)


def _exp(v: Array, bits: int) -> Array:
    """Return e^-v with 15 fractional bits, for v above 0: a series around 1/8 for the rest above quarters, then a
    factor for each power of two."""
    quarters = (v - 1) >> (bits - 2)
    x = 4096 - ((v - (quarters << (bits - 2))) << (15 - bits))
    x2 = _product(x, x)
    x4 = (_product(x2, x2) + 2) >> 2
    e = 28918 + _product(x + ((_product(x4 + _product(x2, x), 10923) + x2 + 1) >> 1), 28918)
    for i, factor in enumerate(FACTORS):
        e = np.where(quarters >> i & 1, _product(e, factor), e)
    return np.asarray(np.where(quarters < 1 << len(FACTORS), e, 0))


def _reciprocal(e: Array) -> Array:
    """Return 2 / (1 + e) with 13 fractional bits, by three steps of Newton's method from 48/17 - 32/17 d on."""
    half = (e + 32768) >> 1
    x = 23130 + _product(half, -15420)
    for _ in range(3):
        x = x + 4 * _product(x, 8192 - _product(half, x))
    return np.asarray(x)


def _product(a: Array, b: Array | int) -> Array:
    return half_up(a * b, UNIT_BITS)


def lstm(walk: Walk, node: Node) -> None:
    """Add the int8 form of an LSTM: with the file's own scales if LiteRT quantized the layer, else as any recurrent
    layer."""
    op = node.op
    assert isinstance(op, Lstm)
    scales = _weight_scales(walk.graph.of(node.inputs[-3:-1]))
    if op.cell is None or scales is None or len(node.inputs) != 6 or (q_y := walk.quant(node.outputs[0])) is None:
        recurrent(walk, node)
        return
    x, h, c, *names = node.inputs
    weights = walk.graph.of(names)
    q_x = walk.scale(x)
    w_ih, from_x, by_x = _gates(weights[0], q_x, scales[0], data_of(weights, 2).astype(np.float64))
    w_hh, from_h, by_h = _gates(weights[1], q_y, scales[1], np.zeros(len(w_ih)))
    unit = np.float32(2.0**-UNIT_BITS)
    multiplier, shift = _multiplier(unit / np.float32(q_y.scale[0]) * unit)
    if min(shift, *(s for _, s in by_x + by_h)) < -30 or shift >= 0:
        recurrent(walk, node)  # scales that no layer has
        return
    walk.found[h] = q_y
    inputs = (
        walk.int8(x),
        walk.int8(h),
        add_state(walk, c, op.cell.bits),
        walk.constant(weights[0], "int8", w_ih),
        walk.constant(weights[1], "int8", w_hh),
        walk.constant(weights[2], "biases", np.stack([from_x, from_h], axis=1).astype(np.int32)),
        walk.constant(weights[0], "scales", np.array([a + b for a, b in zip(by_x, by_h, strict=True)], np.int32)),
    )
    y, h_end, c_end = node.outputs
    outputs = (int_output(walk, y, DType.INT8, q_y), int_output(walk, c_end, DType.INT16, None))
    made = LiteRtLstm(op.cell, q_y.zero_point[0], multiplier, shift, op.batch_first)
    walk.nodes += [Node(made, inputs, outputs), Node(FromFixed(op.cell.bits), (outputs[1],), (c_end,))]
    walk.floats.add(c_end)
    walk.stored[y] = outputs[0]
    walk.found |= {y: q_y, h_end: q_y}
    walk.stored[h_end] = last_time(walk, op, outputs[0], h_end, q_y)


def _weight_scales(weights: Sequence[Tensor]) -> list[list[float]] | None:
    """Return the scale of each gate's weights, or None if the file does not have one for each."""
    found = []
    for t in weights:
        if t.data is None or t.quant is None or t.quant.axis != 0 or any(t.quant.zero_point):
            return None
        gates = np.array(t.quant.scale).reshape(GATES, -1)
        if (gates != gates[:, :1]).any():
            return None
        found.append([float(s) for s in gates[:, 0]])
    return found


def _gates(t: Tensor, x: Quant, scales: list[float], bias: Array) -> tuple[Array, Array, list[tuple[int, int]]]:
    """Return a weight as int8, its biases, and multiplier and shift of each gate."""
    by_row = np.repeat(np.array(scales), len(bias) // GATES)
    w = np.clip(np.rint(data_of([t], 0).astype(np.float64) / by_row[:, None]), -128, 127).astype(np.int8)
    wide = w.astype(np.int64)
    biases = np.rint(bias / (x.scale[0] * by_row)) - x.zero_point[0] * wide.sum(axis=1)
    found = [_multiplier(np.float32(s) * np.float32(x.scale[0]) * np.float32(1 << GATE_BITS)) for s in scales]
    most = int((np.abs(biases) + 128 * np.abs(wide).sum(axis=1)).max(initial=0))
    fits_32_bits(most << max(1, *(shift + 1 for _, shift in found)))
    return w, biases, found


def _multiplier(factor: np.float32) -> tuple[int, int]:
    """Return (m, s) such that m / 2^31 * 2^s is nearest to the factor, with 31 bits of m."""
    part, shift = frexp(float(factor))
    return round(part * (1 << 31)), shift


def _params(call: Call[LiteRtLstm]) -> Params:
    op = call.op
    return Params(
        "bt_litert",
        (
            *extents(call.x, call.inputs[4].shape[1], op.batch_first),
            ("cell_bits", op.cell.bits),
            ("cell_lo", op.cell.lo),
            ("cell_hi", op.cell.hi),
            *fields_of(op, "multiplier", "shift", "zero"),
        ),
    )


def _pack(call: Call[LiteRtLstm]) -> tuple[Packed, ...]:
    return pack_inputs(call, "weight_ih", "weight_hh", "biases", "scales", first=3)


def _pack_fours(call: Call[LiteRtLstm]) -> tuple[Packed, ...]:
    """Return the weights as qlinear packs them for such a core, each gate apart."""
    w_ih, w_hh, *rest = _pack(call)
    return (
        *(Packed(w.role, np.concatenate([dsp.four_rows(g) for g in _parts(w.data)])) for w in (w_ih, w_hh)),
        *rest,
    )


def _parts(weight: Array) -> list[Array]:
    return np.split(weight, GATES)


def _constant(call: Call[LiteRtLstm]) -> bool:
    return has_constants(call, 3)


def _fits_fours(call: Call[LiteRtLstm]) -> bool:
    return _constant(call) and all(dsp.fits_pairs(g) for i in (3, 4) for g in _parts(data_of(call.inputs, i)))


def _scratch(call: Call[LiteRtLstm]) -> int:
    """Return the bytes of four gates of 16 bits."""
    return 8 * call.inputs[4].shape[1]


_REF = Kernel[LiteRtLstm](
    "bt_litert_lstm_ref",
    "qrecurrent/ref.c",
    _params,
    fits=_constant,
    pack=_pack,
    as_they_are=3,
    scratch=_scratch,
    renews=((2, 1),),
)
KERNELS = (_REF.for_cpu("dsp", DSP, fits=_fits_fours, pack=_pack_fours), _REF)

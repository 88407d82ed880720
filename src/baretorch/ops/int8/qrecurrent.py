"""qlstm, qgru and qrnn: one recurrent layer in one direction, in integers only. See docs/arithmetic.md.

Weights are int8, input and output int8 or both int16; gates and states have 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Quant, Signature, Tensor, fresh
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import data_of
from baretorch.ops.int8.arithmetic import multipliers
from baretorch.ops.int8.gates import (
    CELL_BITS,
    GATE_BITS,
    HALF,
    HIDDEN_BITS,
    UNIT_BITS,
    clip_to_int16,
    half_up,
    sigmoid,
    sigmoid_word,
    tanh,
)
from baretorch.ops.int8.layer import weight_scales
from baretorch.ops.int8.quantize import FromFixed, ToFixed
from baretorch.ops.int8.rules import StaysFloat, Walk, fits_32_bits
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.move import Cat, Slice
from baretorch.ops.packing.recurrent import kernels
from baretorch.ops.recurrent import Gru, Lstm, OverTime, Recurrent, Rnn

TRIED_RATIOS = 256
LARGEST_FACTORS = (255, 63, 15, 3, 1)  # of a row's sums, the first that leaves them in 32 bits


@dataclass(frozen=True)
class QRecurrent(OverTime):
    """x int8[T, N, I], states int16[N, H] or none, w_ih int8[gates H, I], w_hh int8[gates H, H], rows int32[gates H, 4]
    -> y int8[T, N, H] and the states at the end, int16. States that are not given are zeros. If x is int16, so is y.

    `rows` has for each row of the weights the numbers to add to the input's sum and to the hidden state's, 256 times
    the factor of the first plus that of the second, and the multiplier of both. Zero points are folded in. y = zero +
    h, requantized by `multiplier` and `y_shift`.
    """

    gates: ClassVar[int]
    bits: ClassVar[tuple[int, ...]]  # fractional bits of the states
    doubled: ClassVar[tuple[int, ...]] = ()  # gates that have one more, for tanh(v) = 2 sigmoid(2 v) - 1
    together: ClassVar[int]  # units whose rows kernels multiply together
    separate: ClassVar[int | None] = None  # a gate that needs the hidden state's sum apart
    zero: int
    multiplier: int
    y_shift: int = 0
    shift: int = 0
    reverse: bool = False
    batch_first: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, *state, w_ih, w_hh, rows = inputs
        time, batch = self.extent(x)
        hidden = w_hh.shape[-1]
        wanted = [(self.gates * hidden, x.shape[-1]), (self.gates * hidden, hidden), (self.gates * hidden, 4)]
        types = [w_ih.dtype, w_hh.dtype, rows.dtype]
        need(
            len(x.shape) == 3
            and time > 0
            and [w_ih.shape, w_hh.shape, rows.shape] == wanted
            and x.dtype in (DType.INT8, DType.INT16)
            and types == [DType.INT8, DType.INT8, DType.INT32]
            and len(state) in (0, len(self.bits))
            and all((s.shape, s.dtype) == ((batch, hidden), DType.INT16) for s in state),
            self,
            "the inputs are not those of an int8 recurrent layer",
            inputs,
            "x int8 or int16[T, N, I], states int16[N, H] or none, int8 weights, int32 rows",
        )
        end = Signature((batch, hidden), DType.INT16)
        return (Signature((*x.shape[:2], hidden), x.dtype), *(end for _ in self.bits))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        limits = np.iinfo(inputs[0].dtype)
        x, *state, w_ih, w_hh, rows = (i.astype(np.int64) for i in inputs)
        if self.batch_first:
            x = x.swapaxes(0, 1)
        state = state or [np.zeros((x.shape[1], w_hh.shape[1]), np.int64)] * len(self.bits)
        y = np.empty((*x.shape[:2], w_hh.shape[1]), inputs[0].dtype)
        for t in reversed(range(len(x))) if self.reverse else range(len(x)):
            from_x = x[t] @ w_ih.T * (rows[:, 2] >> 8) + rows[:, 0]
            from_h = state[0] @ w_hh.T * (rows[:, 2] & 255) + rows[:, 1]
            state = self.step(from_x, from_h, rows[:, 3], state)
            y[t] = np.clip(_scale(state[0] << self.y_shift, self.multiplier) + self.zero, limits.min, limits.max)
        return (y.swapaxes(0, 1) if self.batch_first else y, *(s.astype(np.int16) for s in state))

    def gate(self, sums: Array, factors: Array) -> Array:
        """Return sums with a gate's fractional bits."""
        return _scale(sums << self.shift, factors)

    def step(self, x: Array, h: Array, factors: Array, state: list[Array]) -> list[Array]:
        """Return the next states, from the sums of input and hidden state for each gate, and their multipliers."""
        raise NotImplementedError


def _scale(acc: Array, multiplier: Array | int) -> Array:
    product: Array = acc * multiplier + (1 << 31)
    return np.asarray(product >> 32)


@dataclass(frozen=True)
class QLstm(QRecurrent, name="qlstm", gates=4, together=1, bits=(HIDDEN_BITS, CELL_BITS), doubled=(2,)):
    """Gates i, f, g, o; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c). States: h, c."""

    def step(self, x: Array, h: Array, factors: Array, state: list[Array]) -> list[Array]:
        i, f, g, o = np.split(sigmoid_word(clip_to_int16(self.gate(x + h, factors))), 4, axis=1)
        added = (i >> 16) * ((g - HALF) >> 16)
        c = clip_to_int16(half_up(2 * (f >> 16) * state[1] + added, UNIT_BITS + 1))
        out = (o >> 16) * ((sigmoid_word(clip_to_int16(4 * c)) - HALF) >> 16)
        return [half_up(out, UNIT_BITS - 1), c]


@dataclass(frozen=True)
class QGru(QRecurrent, name="qgru", gates=3, together=2, separate=2, bits=(HIDDEN_BITS,)):
    """Gates r, z, n; n = tanh(x + sigmoid(r) h); h = n + sigmoid(z) (h - n)."""

    def step(self, x: Array, h: Array, factors: Array, state: list[Array]) -> list[Array]:
        n = 2 * state[0].shape[1]
        r, z = np.split(sigmoid(clip_to_int16(self.gate((x + h)[:, :n], factors[:n]))), 2, axis=1)
        v, u = (self.gate(part[:, n:], factors[n:]) for part in (x, h))
        candidate = tanh(clip_to_int16(2 * (v + half_up(r * clip_to_int16(u), UNIT_BITS))))
        return [candidate + half_up(z * clip_to_int16(state[0] - candidate), UNIT_BITS)]


@dataclass(frozen=True)
class QRnn(QRecurrent, name="qrnn", gates=1, together=4, bits=(HIDDEN_BITS,), doubled=(0,)):
    """h = tanh(x + h)."""

    def step(self, x: Array, h: Array, factors: Array, state: list[Array]) -> list[Array]:
        return [tanh(clip_to_int16(self.gate(x + h, factors)))]


KINDS: dict[type[Recurrent], type[QRecurrent]] = {Lstm: QLstm, Gru: QGru, Rnn: QRnn}

UNIT = Quant((1 / 128,), (0,))  # fits every hidden state: it is between -1 and 1


def recurrent(walk: Walk, node: Node) -> None:
    """Add the int8 form of a recurrent layer, with int8 weights and the `rows` of `QRecurrent`. States are float
    outside: the ones that are read are converted."""
    op, graph = node.op, walk.graph
    assert isinstance(op, Recurrent)
    if isinstance(op, Rnn) and op.relu:
        raise StaysFloat("its hidden state has no limit")
    kind = KINDS[type(op)]
    x, *states = node.inputs[:-3]
    weights = graph.of(node.inputs[-3:])
    if any(t.data is None for t in weights):
        raise StaysFloat("its weight or bias is computed")
    q_x, q_y = walk.scale(x), _hidden_scale(walk, node)
    wide = q_y.bits == 16
    if q_y.scale[0] <= 2.0 ** (1 - kind.bits[0]):
        raise StaysFloat(f"its hidden state's scale {q_y.scale[0]:.3g} is too fine")
    y, *ends = node.outputs
    walk.found |= {y: q_y, ends[0]: q_y}
    fine = Quant((walk.finer_scale(x),), (0,)) if wide else q_x
    w_ih, w_hh, rows, shift = _rows(kind, weights, fine, 1 << 15 if wide else 1 << 7)
    (multiplier,), y_shift = multipliers([2.0 ** -kind.bits[0] / (walk.finer_scale(y) if wide else q_y.scale[0])])
    zero = 0 if wide else q_y.zero_point[0]
    made = kind(zero, int(multiplier), y_shift, shift, op.reverse, op.batch_first)
    inputs = (
        walk.int16(x) if wide else walk.int8(x),
        *(add_state(walk, name, bits) for name, bits in zip(states, kind.bits, strict=False)),
        walk.constant(weights[0], "int8", w_ih),
        walk.constant(weights[1], "int8", w_hh),
        walk.constant(weights[0], "rows", rows),
    )
    dtype, quant = (DType.INT16, Quant((walk.finer_scale(y),), (0,))) if wide else (DType.INT8, q_y)
    outputs = [int_output(walk, y, dtype, quant), *(int_output(walk, end, DType.INT16, None) for end in ends)]
    walk.nodes.append(Node(made, inputs, tuple(outputs)))
    (walk.wide if wide else walk.stored)[y] = outputs[0]
    for end, fixed, bits in zip(ends, outputs[1:], kind.bits, strict=True):
        walk.nodes.append(Node(FromFixed(bits), (fixed,), (end,)))
        walk.floats.add(end)
    (walk.wide if wide else walk.stored)[ends[0]] = last_time(walk, op, outputs[0], ends[0], quant)


def _hidden_scale(walk: Walk, node: Node) -> Quant:
    """Return the scale measured for the hidden state, at all times or at the end, or for a tensor that consists of its
    values."""
    uses = walk.uses
    names = list(node.outputs[:2])
    for name in names:
        if (quant := walk.quant(name)) is not None:
            return quant
        names += [n.outputs[0] for n in uses.get(name, ()) if isinstance(n.op, (Cat, Permute, Reshape, Slice))]
    return UNIT


def _rows(kind: type[QRecurrent], tensors: Sequence[Tensor], x: Quant, most: int) -> tuple[Array, Array, Array, int]:
    """Return weights as int8, `rows`, and the shift of all, for inputs of this scale, of which none is above `most`.

    Sums of the input and of the hidden state are added, so their scales have a whole ratio, `first` to `second`. The
    weights' scales are rounded up for that; they are those that the weights were rounded to before, if any.
    """
    w_ih, w_hh, bias = (data_of(tensors, i).astype(np.float64) for i in range(3))
    count = len(w_ih)
    own, reset = bias[:count], np.zeros(count)
    reset[count - (len(bias) - count) :] = bias[count:]  # gru: the part that the reset gate applies to
    s_h = 2.0**-HIDDEN_BITS
    p = x.scale[0] * _scales(tensors[0], w_ih, own, x.scale[0])
    q = s_h * _scales(tensors[1], w_hh, reset, s_h)
    p, q = np.where(w_ih.any(axis=1) | ~w_hh.any(axis=1), p, q), np.where(w_hh.any(axis=1), q, p)
    bits = np.array([GATE_BITS + (r // (count // kind.gates) in kind.doubled) for r in range(count)])
    parts = ((w_ih * x.scale[0], most), (w_hh * s_h, 2 << HIDDEN_BITS))
    for largest in LARGEST_FACTORS:
        first, second, scales = _whole_ratios(p, q, parts, largest)
        ih = _round_and_clip(parts[0][0], first * scales)
        hh = _round_and_clip(parts[1][0], second * scales)
        multiplier, shift = multipliers([float(f) for f in scales * 2.0**bits])
        added = np.rint(own / scales) - x.zero_point[0] * first * ih.sum(axis=1), np.rint(reset / scales)
        sums = first * most * np.abs(ih).sum(axis=1) + second * 2**15 * np.abs(hh).sum(axis=1)
        reached = int((np.abs(added[0]) + np.abs(added[1]) + sums).max(initial=0)) << shift
        if reached < 1 << 31:
            break
    fits_32_bits(reached)
    rows = np.stack([*added, 256 * first + second, multiplier], axis=1)
    return ih.astype(np.int8), hh.astype(np.int8), rows.astype(np.int32), shift


def _round_and_clip(weights: Array, scales: Array) -> Array:
    return np.asarray(np.clip(np.rint(weights / scales[:, None]), -127, 127))


def _scales(t: Tensor, data: Array, bias: Array, s_x: float) -> Array:
    noted = t.quant is not None and t.quant.axis == 0 and not any(t.quant.zero_point)
    scales = np.array(t.quant.scale) if t.quant and noted else np.abs(data).max(axis=1, initial=0.0) / 127
    return weight_scales(scales, data, bias, s_x, 2.0**-GATE_BITS)


def _whole_ratios(p: Array, q: Array, parts: Sequence[tuple[Array, int]], largest: int) -> tuple[Array, Array, Array]:
    """Return whole numbers a and b up to `largest` and a scale for each row, such that a and b times the scale are at
    least p and q. Of those with the finest steps, choose the ones with the least rounding errors for inputs of half
    their reach. The hidden state counts twice, because inputs are far from their limits more often."""
    k = np.arange(1, largest + 1)
    scales = np.concatenate([p[:, None] / k, q[:, None] / k], axis=1)
    a, b = (np.maximum(np.ceil(n[:, None] / scales - 1e-9), 1) for n in (p, q))
    steps = [rows.shape[1] * (n * scales * reach) ** 2 for n, (rows, reach) in zip((a, b), parts, strict=True)]
    coarse = np.where((a > largest) | (b > largest), np.inf, sum(steps))
    finest = coarse.argsort(axis=1, kind="stable")[:, :TRIED_RATIOS]
    a, b, scales = (np.take_along_axis(values, finest, axis=1) for values in (a, b, scales))
    errors = np.zeros(a.shape)
    for i in range(a.shape[1]):
        for n, (rows, reach) in zip((a, b), parts, strict=True):
            step = n[:, i] * scales[:, i]
            errors[:, i] += ((_round_and_clip(rows, step) * step[:, None] - rows) ** 2).sum(axis=1) * reach**2
    errors[(a > largest) | (b > largest)] = np.inf
    best = errors.argmin(axis=1)[:, None]
    a, b, scales = (np.take_along_axis(values, best, axis=1)[:, 0] for values in (a, b, scales))
    return a, b, scales


def add_state(walk: Walk, name: str, bits: int) -> str:
    """Quantize an initial state that the model gets as an input or a constant, in fixed point; return its name."""
    t = walk.graph[name]
    if t.data is not None:
        return walk.constant(t, "fixed", ToFixed(bits).reference(t.data)[0])
    fixed = int_output(walk, name, DType.INT16, None)
    walk.nodes.append(Node(ToFixed(bits), (walk.real(name),), (fixed,)))
    return fixed


def int_output(walk: Walk, like: str, dtype: DType, quant: Quant | None) -> str:
    name = fresh(walk.graph, walk.new, f"{like}_{dtype.label}")
    walk.new[name] = replace(walk.graph[like], name=name, dtype=dtype, quant=quant, value="")
    return name


def last_time(walk: Walk, op: Recurrent, y: str, end: str, quant: Quant) -> str:
    """Return the hidden state at the end as int8: y at the last time, which is the first if the layer runs
    backwards."""
    axis = 1 if op.batch_first else 0
    shape = walk.new[y].shape
    at = 0 if op.reverse else shape[axis] - 1
    cut, flat = Slice(axis, at, at + 1), Reshape(walk.graph[end].shape)
    if walk.new[y].dtype is DType.INT16:
        return walk.add_int16(flat, end, walk.add_int16(cut, end, y))
    part = walk.add(cut, end, tuple(1 if d == axis else n for d, n in enumerate(shape)), quant, y)
    return walk.view(flat, end, part)


LSTM = (*kernels("qlstm", DType.INT8, 2), *kernels("qlstm16", DType.INT16, 2))
GRU = (*kernels("qgru", DType.INT8, 1), *kernels("qgru16", DType.INT16, 1))
RNN = (*kernels("qrnn", DType.INT8, 1), *kernels("qrnn16", DType.INT16, 1))

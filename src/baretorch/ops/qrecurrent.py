"""qlstm, qgru and qrnn: one recurrent layer in one direction, in integers only. See docs/arithmetic.md.

Input, weights and what the next step reads of the hidden state are int8; gates and states have 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from baretorch.ir import Array, DType, Node, Op, Quant, Signature, Tensor, fresh
from baretorch.ops import pack_dsp
from baretorch.ops.arithmetic import multipliers
from baretorch.ops.check import need
from baretorch.ops.fixed_point import FromFixed, ToFixed
from baretorch.ops.int8 import StaysFloat, Walk, fits_32_bits
from baretorch.ops.int8_layer import weight_scales
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.move import Cat, Slice
from baretorch.ops.recurrent import STATES, Gru, Lstm, Recurrent, Rnn
from baretorch.targets.features import DSP

# Fractional bits:
GATE_BITS = 12  # of what sigmoid is applied to: up to 8, where it is flat
UNIT_BITS = 13  # of what it gives: up to 1
HIDDEN_BITS = 13  # of the hidden state: up to 4, as models may give one that no layer would make
CELL_BITS = 11  # of lstm's cell state: up to 16
WORD_BITS = UNIT_BITS + 16  # of a sigmoid before its last 16 bits are dropped
PIECES = 256
HALF = 1 << (WORD_BITS - 1)  # tanh(v / 2) / 2 = sigmoid(v) - 1/2


def sigmoid_table() -> Array:
    """sigmoid from -8 to 8 in straight pieces: slope s and offset a of each, as a << 16 | s, of all pairs the one with
    the least squared error. What follows rounds down, so there is half a step in it."""
    v = np.arange(-(1 << 15), 1 << 15).reshape(PIECES, -1)
    exact = 2.0**WORD_BITS / (1 + np.exp(-v / 2**GATE_BITS)) + (1 << 15)
    steepest = np.rint((exact[:, -1] - exact[:, 0]) / (v.shape[1] - 1))
    near = np.floor((exact - steepest[:, None] * (v + 1)).mean(axis=1) / (1 << 16))
    found = []
    for offset in (near, near + 1):  # the word's low half counts as well, so a slope is met once more than v times
        rest = exact - offset[:, None] * (1 << 16)
        slope = np.clip(np.rint((rest * (v + 1)).sum(axis=1) / ((v + 1) ** 2).sum(axis=1)), 0, 32767)
        error = ((rest - slope[:, None] * (v + 1)) ** 2).sum(axis=1)
        found.append((error, offset.astype(np.int64) << 16 | slope.astype(np.int64)))
    (low, below), (high, above) = found
    return np.asarray(np.where(low <= high, below, above), np.int32)


def sigmoid_word(v: Array) -> Array:
    """Of numbers with 12 fractional bits, with 29, of which 13 count."""
    piece = sigmoid_table().astype(np.int64)[(v >> 8) + PIECES // 2]
    return np.asarray(piece + (piece & 0x7FFF) * v)


def sigmoid(v: Array) -> Array:
    """With 13 fractional bits."""
    return np.asarray(sigmoid_word(v) >> 16)


def tanh(v: Array) -> Array:
    """Of half of a number with 12 fractional bits, with 13."""
    return np.asarray((sigmoid_word(v) - HALF - (1 << 14)) >> 15)


def half_up(v: Array, bits: int) -> Array:
    return np.asarray((v + (1 << (bits - 1))) >> bits)


def short(v: Array) -> Array:
    return np.asarray(np.clip(v, -32768, 32767))


@dataclass(frozen=True)
class QRecurrent(Op):
    """x int8[T, N, I], states int16[N, H] or none, w_ih int8[gates H, I], w_hh int8[gates H, H],
    rows int32[gates H, 4] -> y int8[T, N, H] and the states at the end, int16. States not given are zeros.

    Of each row of the weights, `rows` has bias and multiplier for the input, then for the hidden state. Zero points are
    folded into the biases. y = zero + h, requantized by `multiplier`."""

    gates: ClassVar[int]
    bits: ClassVar[tuple[int, ...]]  # fractional bits of the states
    doubled: ClassVar[tuple[int, ...]] = ()  # gates that have one more, for tanh(v) = 2 sigmoid(2 v) - 1
    zero: int
    multiplier: int
    shift_ih: int = 0
    shift_hh: int = 0
    reverse: bool = False
    batch_first: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, *state, w_ih, w_hh, rows = inputs
        time, batch = self.extent(x)
        hidden = w_hh.shape[-1]
        wanted = [(self.gates * hidden, x.shape[-1]), (self.gates * hidden, hidden), (self.gates * hidden, 4)]
        types = [x.dtype, w_ih.dtype, w_hh.dtype, rows.dtype]
        need(
            len(x.shape) == 3
            and time > 0
            and [w_ih.shape, w_hh.shape, rows.shape] == wanted
            and types == [DType.INT8, DType.INT8, DType.INT8, DType.INT32]
            and len(state) in (0, len(self.bits))
            and all((s.shape, s.dtype) == ((batch, hidden), DType.INT16) for s in state),
            self,
            "the inputs are not those of an int8 recurrent layer",
            inputs,
            "x int8[T, N, I], states int16[N, H] or none, int8 weights, int32 rows",
        )
        end = Signature((batch, hidden), DType.INT16)
        return (Signature((*x.shape[:2], hidden), DType.INT8), *(end for _ in self.bits))

    def extent(self, x: Tensor) -> tuple[int, int]:
        """T and N."""
        a, b = (*x.shape, 0, 0)[:2]
        return (b, a) if self.batch_first else (a, b)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, *state, w_ih, w_hh, rows = (i.astype(np.int64) for i in inputs)
        if self.batch_first:
            x = x.swapaxes(0, 1)
        state = state or [np.zeros((x.shape[1], w_hh.shape[1]), np.int64)] * len(self.bits)
        y = np.empty((*x.shape[:2], w_hh.shape[1]), np.int8)
        stored = self.stored(state[0])
        for t in reversed(range(len(x))) if self.reverse else range(len(x)):
            from_x = _factored((x[t] @ w_ih.T + rows[:, 0]) << self.shift_ih, rows[:, 1])
            from_h = _factored((stored @ w_hh.T + rows[:, 2]) << self.shift_hh, rows[:, 3])
            state = self.step(from_x, from_h, state)
            y[t] = stored = self.stored(state[0])
        return (y.swapaxes(0, 1) if self.batch_first else y, *(s.astype(np.int16) for s in state))

    def stored(self, h: Array) -> Array:
        """The hidden state as int8, in y's scale."""
        return np.asarray(np.clip(_factored(h, np.array(self.multiplier)) + self.zero, -128, 127))

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        """The next states, from what input and hidden state give to each gate."""
        raise NotImplementedError

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        time, batch = self.extent(inputs[0])
        return time * batch * (inputs[-3].count + inputs[-2].count)


def _factored(acc: Array, multiplier: Array) -> Array:
    return np.asarray((acc * multiplier + (1 << 31)) >> 32)


@dataclass(frozen=True)
class QLstm(QRecurrent):
    """Gates i, f, g, o; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c). States: h, c."""

    name: ClassVar[str] = "qlstm"
    gates: ClassVar[int] = 4
    bits: ClassVar[tuple[int, ...]] = (HIDDEN_BITS, CELL_BITS)
    doubled: ClassVar[tuple[int, ...]] = (2,)

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        i, f, g, o = np.split(sigmoid_word(short(x + h)), 4, axis=1)
        added = (i >> 16) * ((g - HALF) >> 16)
        c = short(half_up(2 * (f >> 16) * state[1] + added, UNIT_BITS + 1))
        out = (o >> 16) * ((sigmoid_word(short(4 * c)) - HALF) >> 16)
        return [half_up(out, UNIT_BITS - 1), c]


@dataclass(frozen=True)
class QGru(QRecurrent):
    """Gates r, z, n; n = tanh(x + sigmoid(r) h); h = n + sigmoid(z) (h - n)."""

    name: ClassVar[str] = "qgru"
    gates: ClassVar[int] = 3
    bits: ClassVar[tuple[int, ...]] = (HIDDEN_BITS,)

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        n = state[0].shape[1]
        r, z = np.split(sigmoid(short((x + h)[:, : 2 * n])), 2, axis=1)
        candidate = tanh(short(2 * (x[:, 2 * n :] + half_up(r * short(h[:, 2 * n :]), UNIT_BITS))))
        return [candidate + half_up(z * (state[0] - candidate), UNIT_BITS)]


@dataclass(frozen=True)
class QRnn(QRecurrent):
    """h = tanh(x + h)."""

    name: ClassVar[str] = "qrnn"
    gates: ClassVar[int] = 1
    bits: ClassVar[tuple[int, ...]] = (HIDDEN_BITS,)
    doubled: ClassVar[tuple[int, ...]] = (0,)

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        return [tanh(short(x + h))]


KINDS: dict[type[Recurrent], type[QRecurrent]] = {Lstm: QLstm, Gru: QGru, Rnn: QRnn}

UNIT = Quant((1 / 128,), (0,))  # fits every hidden state: it is between -1 and 1


def recurrent(walk: Walk, node: Node) -> None:
    """Weights int8 per row, one bias and one multiplier per row for the input and for the hidden state. The states come
    and go as float: what is read of them is converted, the rest is left out."""
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
    if q_y.scale[0] <= 2.0 ** (1 - kind.bits[0]):
        raise StaysFloat(f"its hidden state's scale {q_y.scale[0]:.3g} is too fine")
    bias = data_of(weights, 2)
    split = len(data_of(weights, 0))
    reset = np.zeros(split)
    reset[split - (len(bias) - split) :] = bias[split:]  # gru: what the reset gate applies to
    hidden = split // kind.gates
    gate_bits = np.array([GATE_BITS + (r // hidden in kind.doubled) for r in range(split)])
    w_ih, ih, shift_ih = _rows(weights[0], q_x, bias[:split].astype(np.float64), gate_bits)
    w_hh, hh, shift_hh = _rows(weights[1], q_y, reset, gate_bits)
    (multiplier,), _ = multipliers([2.0 ** -kind.bits[0] / q_y.scale[0]])
    made = kind(q_y.zero_point[0], int(multiplier), shift_ih, shift_hh, op.reverse, op.batch_first)
    inputs = (
        walk.int8(x),
        *(begin(walk, name, bits) for name, bits in zip(states, kind.bits, strict=False)),
        walk.constant(weights[0], "int8", w_ih),
        walk.constant(weights[1], "int8", w_hh),
        walk.constant(weights[0], "rows", np.concatenate([ih, hh], axis=1).astype(np.int32)),
    )
    y, *ends = node.outputs
    outputs = [int_output(walk, y, DType.INT8, q_y), *(int_output(walk, end, DType.INT16, None) for end in ends)]
    walk.nodes.append(Node(made, inputs, tuple(outputs)))
    walk.stored[y] = outputs[0]
    for end, fixed, bits in zip(ends, outputs[1:], kind.bits, strict=True):
        walk.nodes.append(Node(FromFixed(bits), (fixed,), (end,)))
        walk.floats.add(end)
    walk.found |= {y: q_y, ends[0]: q_y}
    walk.stored[ends[0]] = last_time(walk, op, outputs[0], ends[0], q_y)


def _hidden_scale(walk: Walk, node: Node) -> Quant:
    """The scale measured for the hidden state, at all times or at the end, or of what is just made of it."""
    uses = walk.graph.uses()
    names = list(node.outputs[:2])
    for name in names:
        if (quant := walk.quant(name)) is not None:
            return quant
        names += [n.outputs[0] for n in uses.get(name, ()) if isinstance(n.op, (Cat, Permute, Reshape, Slice))]
    return UNIT


def _rows(t: Tensor, x: Quant, bias: Array, bits: Array) -> tuple[Array, Array, int]:
    """(a weight as int8, bias and multiplier per row, the shift of all), for a product whose result has these
    fractional bits. Multipliers are those of 256, so that kernels may scale 256 times a sum as well. The scales of its
    rows are those it was rounded to before, if any."""
    data = data_of([t], 0).astype(np.float64)
    if t.quant is not None and t.quant.axis == 0 and not any(t.quant.zero_point):
        scales = np.array(t.quant.scale)
    else:
        scales = np.abs(data).max(axis=1, initial=0.0) / 127
    scales = weight_scales(scales, data, bias, x.scale[0], 2.0**-GATE_BITS)
    w = np.clip(np.rint(data / scales[:, None]), -127, 127).astype(np.int8)
    factors = x.scale[0] * scales
    wide = w.astype(np.int64)
    multiplier, shift = multipliers([float(f) for f in factors * 2.0**bits])
    multiplier = np.minimum((multiplier.astype(np.int64) + 128) // 256 * 256, (1 << 31) - 256)
    biases = np.rint(bias / factors) - x.zero_point[0] * wide.sum(axis=1)
    fits_32_bits(int((np.abs(biases) + 128 * np.abs(wide).sum(axis=1)).max(initial=0)) << shift)
    return w, np.stack([biases, multiplier], axis=1).astype(np.int64), shift


def begin(walk: Walk, name: str, bits: int) -> str:
    """A state that is given, with a fixed point."""
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
    """The hidden state at the end as int8: y at the last time, which is the first if it runs backwards."""
    axis = 1 if op.batch_first else 0
    shape = walk.new[y].shape
    at = 0 if op.reverse else shape[axis] - 1
    cut = Slice(axis, at, at + 1)
    part = walk.add(cut, end, tuple(1 if d == axis else n for d, n in enumerate(shape)), quant, y)
    return walk.view(Reshape(walk.graph[end].shape), end, part)


def extents(x: Tensor, hidden: int, batch_first: bool) -> tuple[tuple[str, int], ...]:
    """The sizes of a layer, and how many numbers lie between times and samples."""
    a, b, inner = x.shape
    time, batch = (b, a) if batch_first else (a, b)
    outer, between = (1, time) if batch_first else (batch, 1)  # steps of time and batch, in rows
    return (
        ("time", time),
        ("batch", batch),
        ("in", inner),
        ("hidden", hidden),
        ("x_time", outer * inner),
        ("x_batch", between * inner),
        ("y_time", outer * hidden),
        ("y_batch", between * hidden),
    )


def _params(call: Call[Any]) -> Params:
    op = call.op
    return Params(
        "bt_qrecurrent",
        (
            *extents(call.x, call.inputs[-2].shape[1], op.batch_first),
            ("reverse", int(op.reverse)),
            ("shift_ih", op.shift_ih),
            ("shift_hh", op.shift_hh),
            ("multiplier", op.multiplier),
            ("zero", op.zero),
        ),
    )


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    roles = ("weight_ih", "weight_hh", "rows")
    weights = (Packed(role, data_of(call.inputs, i)) for role, i in zip(roles, (-3, -2, -1), strict=True))
    return (*weights, Packed("sigmoid", sigmoid_table()))


def _pack_units(call: Call[Any]) -> tuple[Packed, ...]:
    """Four units together, all their gates, for the input and for the hidden state; see kernels/qrecurrent/. Units that
    are not there have zeros."""
    w_ih, w_hh, rows, sigmoid = (p.data for p in _pack(call))
    missing = -w_hh.shape[1] % 4
    words = []
    for weight, terms, shift in ((w_ih, rows[:, :2], call.op.shift_ih), (w_hh, rows[:, 2:], call.op.shift_hh)):
        sums = terms * np.array([1 << shift, 1])
        gates = np.concatenate([weight, sums], axis=1).reshape(call.op.gates, w_hh.shape[1], -1)
        fours = np.pad(gates, ((0, 0), (0, missing), (0, 0))).reshape(call.op.gates, -1, 4, gates.shape[2])
        words.append([[_with_terms(four) for four in gate] for gate in fours])
    ih, hh = words
    groups, gates_ = range(len(ih[0])), range(call.op.gates)
    together = np.concatenate([part[g][u] for u in groups for g in gates_ for part in (ih, hh)])
    return (Packed("weights", together), Packed("sigmoid", sigmoid))


def _with_terms(four: Array) -> Array:
    """What the sums of four rows begin with, their weights as those of qlinear, their multipliers. Of two rows the
    second has 256 times its sum, and the first's."""
    sums, multipliers = four[:, -2].copy(), four[:, -1].copy()
    sums[1::2] = 256 * sums[1::2] + sums[0::2]
    multipliers[1::2] //= 256
    return np.concatenate([sums, pack_dsp.four_rows(four[:, :-2]), multipliers]).astype(np.int32)


def _fits_units(call: Call[Any]) -> bool:
    """Rows are paired within a gate; no sum reaches 2^23, and multipliers can be divided by 256."""
    op, rows = call.op, data_of(call.inputs, -1).astype(np.int64)
    for weight, terms, shift in ((-3, rows[:, :2], op.shift_ih), (-2, rows[:, 2:], op.shift_hh)):
        w = data_of(call.inputs, weight)
        largest = int((np.abs(terms[:, 0]) + 128 * np.abs(w.astype(np.int64)).sum(axis=1)).max()) << shift
        paired = all(pack_dsp.in_pairs(gate) for gate in np.split(w, op.gates))
        if not paired or largest >= 1 << 23 or shift > 8 or (terms[:, 1] % 256).any():
            return False
    return True


def _scratch(call: Call[Any]) -> int:
    """Gates of 16 bits and a hidden state of 8."""
    gates: int = call.op.gates
    return (2 * gates + 1) * call.inputs[-2].shape[1]


def _scratch_units(call: Call[Any]) -> int:
    """Input and hidden state as halfwords."""
    return 2 * sum(-(-call.inputs[i].shape[1] // 4) * 4 for i in (-3, -2))


def _kernels(name: str) -> tuple[Kernel[Any], ...]:
    """With states given and with states of zeros, for cores with the DSP extension and for all."""

    def constant(call: Call[Any]) -> bool:
        return all(t.data is not None for t in call.inputs[-3:])

    def given(call: Call[Any]) -> bool:
        return constant(call) and len(call.inputs) > 4

    dsp = Kernel(
        f"bt_{name}_dsp",
        "qrecurrent/units_dsp.c",
        _params,
        needs=DSP,
        fits=lambda call: given(call) and _fits_units(call),
        pack=_pack_units,
        scratch=_scratch_units,
        renews=STATES,
    )
    ref = Kernel(f"bt_{name}_ref", "qrecurrent/ref.c", _params, fits=given, pack=_pack, scratch=_scratch, renews=STATES)
    return (
        dsp,
        replace(dsp, symbol=f"bt_{name}_zero_dsp", fits=lambda call: constant(call) and _fits_units(call), renews=()),
        ref,
        replace(ref, symbol=f"bt_{name}_zero_ref", fits=constant, renews=()),
    )


LSTM = _kernels("qlstm")
GRU = _kernels("qgru")
RNN = _kernels("qrnn")

"""qlstm and qgru: one recurrent layer in one direction, in integers only. See docs/arithmetic.md.

Input, weights and what the next step reads of the hidden state are int8; gates and states have 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Signature, Tensor
from baretorch.ops import pack_dsp
from baretorch.ops.check import need
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of
from baretorch.ops.recurrent import STATES
from baretorch.targets.features import ANY_CPU, DSP

# Fractional bits:
GATE_BITS = 12  # of what sigmoid and tanh are applied to: up to 8, where both are flat
UNIT_BITS = 15  # of what they give: up to 1
HIDDEN_BITS = 13  # of the hidden state: up to 4, as models may give one that no layer would make
CELL_BITS = 11  # of lstm's cell state: up to 16
STEPS = 16  # entries of the sigmoid table per 1


def sigmoid_table() -> Array:
    """sigmoid from -8 to 8, with 15 fractional bits."""
    x = np.arange(-8 * STEPS, 8 * STEPS + 1) / STEPS
    return np.asarray(np.rint((1 << UNIT_BITS) / (1 + np.exp(-x))), np.int16)


def sigmoid(v: Array) -> Array:
    """Of numbers with 12 fractional bits, on a straight line between two entries of the table."""
    table = sigmoid_table().astype(np.int64)
    at = (v >> 8) + 8 * STEPS
    return np.asarray(table[at] + _half_up((table[at + 1] - table[at]) * (v & 255), 8))


def tanh(v: Array) -> Array:
    """2 sigmoid(2 v) - 1."""
    return np.asarray(2 * sigmoid(_16(2 * v)) - (1 << UNIT_BITS))


def _half_up(v: Array, bits: int) -> Array:
    return np.asarray((v + (1 << (bits - 1))) >> bits)


def _16(v: Array) -> Array:
    return np.asarray(np.clip(v, -32768, 32767))


@dataclass(frozen=True)
class QRecurrent(Op):
    """x int8[T, N, I], states int16[N, H] or none, w_ih int8[gates H, I], w_hh int8[gates H, H],
    rows int32[gates H, 4] -> y int8[T, N, H] and the states at the end, int16. States not given are zeros.

    Of each row of the weights, `rows` has bias and multiplier for the input, then for the hidden state. Zero points are
    folded into the biases. y = zero + h, requantized by `multiplier`."""

    gates: ClassVar[int]
    bits: ClassVar[tuple[int, ...]]  # fractional bits of the states
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
            from_x = _16(_factored((x[t] @ w_ih.T + rows[:, 0]) << self.shift_ih, rows[:, 1]))
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

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        i, f, g, o = np.split(_16(x + h), 4, axis=1)
        kept = _half_up(sigmoid(f) * state[1], UNIT_BITS)
        c = _16(kept + _half_up(sigmoid(i) * tanh(g), 2 * UNIT_BITS - CELL_BITS))
        h = _half_up(sigmoid(o) * tanh(c << (GATE_BITS - CELL_BITS)), 2 * UNIT_BITS - HIDDEN_BITS)
        return [h, c]


@dataclass(frozen=True)
class QGru(QRecurrent):
    """Gates r, z, n; n = tanh(x + sigmoid(r) h); h = n + sigmoid(z) (h - n)."""

    name: ClassVar[str] = "qgru"
    gates: ClassVar[int] = 3
    bits: ClassVar[tuple[int, ...]] = (HIDDEN_BITS,)

    def step(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        n = state[0].shape[1]
        r, z = np.split(sigmoid(_16(x + h)[:, : 2 * n]), 2, axis=1)
        candidate = tanh(_16(x[:, 2 * n :] + _half_up(r * _16(h[:, 2 * n :]), UNIT_BITS)))
        candidate = _half_up(candidate, UNIT_BITS - HIDDEN_BITS)
        return [candidate + _half_up(z * (state[0] - candidate), UNIT_BITS)]


def _params(call: Call[Any]) -> Params:
    op = call.op
    time, batch = op.extent(call.x)
    inner, hidden = call.x.shape[-1], call.inputs[-2].shape[1]
    outer, between = (1, time) if op.batch_first else (batch, 1)  # steps of time and batch, in rows
    return Params(
        "bt_qrecurrent",
        (
            ("time", time),
            ("batch", batch),
            ("in", inner),
            ("hidden", hidden),
            ("x_time", outer * inner),
            ("x_batch", between * inner),
            ("y_time", outer * hidden),
            ("y_batch", between * hidden),
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


def _pack_fours(call: Call[Any]) -> tuple[Packed, ...]:
    """Weights as those of qlinear on such a core; of gru's hidden state those of the candidate apart."""
    w_ih, w_hh, *rest = _pack(call)
    hidden = np.concatenate([pack_dsp.four_rows(part) for part in _hidden_parts(call)])
    return (Packed(w_ih.role, pack_dsp.four_rows(w_ih.data)), Packed(w_hh.role, hidden), *rest)


def _hidden_parts(call: Call[Any]) -> list[Array]:
    weight = data_of(call.inputs, -2)
    return np.split(weight, [2 * weight.shape[1]] if isinstance(call.op, QGru) else [])


def _fits_fours(call: Call[Any]) -> bool:
    return all(pack_dsp.in_pairs(part) for part in (data_of(call.inputs, -3), *_hidden_parts(call)))


def _scratch(call: Call[Any]) -> int:
    """Four gates of 16 bits and a hidden state of 8, behind which a kernel may read."""
    return 9 * call.inputs[-2].shape[1] + 3


def _kernels(name: str) -> tuple[Kernel[Any], ...]:
    """With states given and with states of zeros, for cores with the DSP extension and for all."""

    def fits(dsp: bool, zero: bool) -> Callable[[Call[Any]], bool]:
        def constant(call: Call[Any]) -> bool:
            return all(t.data is not None for t in call.inputs[-3:])

        return lambda call: constant(call) and (zero or len(call.inputs) > 4) and (not dsp or _fits_fours(call))

    return tuple(
        Kernel(
            f"bt_{name}{zero}_{variant}",
            f"qrecurrent/{variant}.c",
            _params,
            needs=DSP if variant == "dsp" else ANY_CPU,
            fits=fits(variant == "dsp", bool(zero)),
            pack=_pack_fours if variant == "dsp" else _pack,
            scratch=_scratch,
            renews=() if zero else STATES,
        )
        for variant in ("dsp", "ref")
        for zero in ("", "_zero")
    )


LSTM = _kernels("qlstm")
GRU = _kernels("qgru")

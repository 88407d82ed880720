"""lstm, gru, rnn: one layer in one direction, as a loop over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Packed, Params, data_of, fields_of, in_eights
from baretorch.targets.features import FPU


class OverTime(Op):
    """A layer that is a loop over time, of x[T, N, I] or, if `batch_first`, x[N, T, I]."""

    batch_first: bool
    last_weight: ClassVar[int] = -2  # the input with the weights of the hidden state, after those of x

    def extent(self, x: Tensor) -> tuple[int, int]:
        """Return T and N."""
        a, b = (*x.shape, 0, 0)[:2]
        return (b, a) if self.batch_first else (a, b)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        time, batch = self.extent(inputs[0])
        return time * batch * (inputs[self.last_weight - 1].count + inputs[self.last_weight].count)


@dataclass(frozen=True)
class Recurrent(OverTime):
    """x[T, N, I], states[N, H] or none, w_ih[gates * H, I], w_hh[gates * H, H], bias[biases * H] -> y[T, N, H] and the
    states at the end. States that are not given are zeros.

    `batch_first`: x and y are [N, T, ...]. `reverse`: from the last time to the first.
    """

    gates: ClassVar[int]
    biases: ClassVar[int]
    states: ClassVar[int] = 1
    reverse: bool = False
    batch_first: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        x, *state, w_ih, w_hh, bias = (t.shape for t in inputs)
        hidden = w_hh[-1]
        time, batch = self.extent(inputs[0])
        wanted = [(self.gates * hidden, x[-1]), (self.gates * hidden, hidden), (self.biases * hidden,)]
        need(
            len(x) == 3
            and time > 0
            and [w_ih, w_hh, bias] == wanted
            and len(state) in (0, self.states)
            and all(s == (batch, hidden) for s in state),
            self,
            "the shapes do not fit together",
            inputs,
            f"x[T, N, I] with T above 0, states [N, H] or none, weights [{self.gates} H, I] and [{self.gates} H, H], "
            f"bias [{self.biases} H]",
        )
        y = Signature((*x[:2], hidden), DType.FLOAT32)
        return (y, *(Signature((batch, hidden), DType.FLOAT32) for _ in range(self.states)))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, *state, w_ih, w_hh, bias = (i.astype(np.float64) for i in inputs)
        if self.batch_first:
            x = x.swapaxes(0, 1)
        if not state:
            state = [np.zeros((x.shape[1], w_hh.shape[1]))] * self.states
        y = np.empty((*x.shape[:2], w_hh.shape[1]))
        with np.errstate(all="ignore"):
            for t in reversed(range(len(x))) if self.reverse else range(len(x)):
                state = self.step(x[t] @ w_ih.T, state[0] @ w_hh.T, bias, state)
                y[t] = state[0]
        results = (y.swapaxes(0, 1) if self.batch_first else y, *state)
        return tuple(r.astype(np.float32) for r in results)

    def step(self, x: Array, h: Array, bias: Array, state: list[Array]) -> list[Array]:
        """Return the next states, from the products of the weights with the input and with the state before."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cell:
    """The fixed-point format of an LSTM's cell state: 16 bits, the number of fractional bits, and its limits."""

    bits: int
    lo: int = -32768
    hi: int = 32767


@dataclass(frozen=True)
class Lstm(Recurrent, name="lstm", gates=4, biases=4, states=2):
    """Gates i, f, g, o; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c). States: h, c.

    c is limited to [-clip, clip]. `cell` describes how a quantized file stores c. The float layer ignores it; its int8
    form then computes as LiteRT does. Other int8 forms ignore `clip`.
    """

    cell: Cell | None = None
    clip: float = inf

    def step(self, x: Array, h: Array, bias: Array, state: list[Array]) -> list[Array]:
        i, f, g, o = np.split(x + h + bias, 4, axis=1)
        c = np.clip(_sigmoid(f) * state[1] + _sigmoid(i) * np.tanh(g), -self.clip, self.clip)
        return [_sigmoid(o) * np.tanh(c), c]


@dataclass(frozen=True)
class Gru(Recurrent, name="gru", gates=3, biases=4):
    """Gates r, z, n; n = tanh(x + b + sigmoid(r) (h + b')); h = (1 - sigmoid(z)) n + sigmoid(z) h.
    The bias is that of r, z and n, then b', which the reset gate applies to."""

    def step(self, x: Array, h: Array, bias: Array, state: list[Array]) -> list[Array]:
        width = state[0].shape[1]
        r, z = np.split(_sigmoid((x + h)[:, : 2 * width] + bias[: 2 * width]), 2, axis=1)
        n = np.tanh(x[:, 2 * width :] + bias[2 * width : 3 * width] + r * (h[:, 2 * width :] + bias[3 * width :]))
        return [n + z * (state[0] - n)]


@dataclass(frozen=True)
class Rnn(Recurrent, name="rnn", gates=1, biases=1):
    """h = tanh(x + h + bias), or relu instead of tanh."""

    relu: bool = False

    def step(self, x: Array, h: Array, bias: Array, state: list[Array]) -> list[Array]:
        total = x + h + bias
        return [np.maximum(total, 0.0) if self.relu else np.tanh(total)]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _params(call: Call[Any]) -> Params:
    relu = int(isinstance(call.op, Rnn) and call.op.relu)
    sizes = extents(call.x, call.inputs[-2].shape[1], call.op.batch_first)
    clip = call.op.clip if isinstance(call.op, Lstm) else inf
    return Params("bt_recurrent_f32", (*sizes, *fields_of(call.op, "reverse"), ("relu", relu), ("clip", clip)))


def extents(x: Tensor, hidden: int, batch_first: bool) -> Fields:
    """Return the sizes of a recurrent layer, and how far times and samples are from each other."""
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


def _pack_eights(call: Call[Any]) -> tuple[Packed, ...]:
    w_ih, w_hh, bias = (data_of(call.inputs, i) for i in (-3, -2, -1))
    parts = [2 * w_hh.shape[1]] if isinstance(call.op, Gru) else []  # the candidate's sums are kept apart
    hidden = np.concatenate([in_eights(part) for part in np.split(w_hh, parts)])
    return (Packed("weight_ih", in_eights(w_ih)), Packed("weight_hh", hidden), Packed("bias", bias))


def _packable(call: Call[Any]) -> bool:
    """Return whether only the weights are constants."""
    constant = [t.data is not None for t in call.inputs]
    return constant == [False] * (len(constant) - 3) + [True] * 3


STATES = ((1, 1), (2, 2))  # those before and those at the end: a sample's are written when they have been read


def _kernels(name: str, scratch: int) -> tuple[Kernel[Any], ...]:
    """Return the kernels with states given and with states of zeros; `scratch` in floats per unit."""

    def room(call: Call[Any]) -> int:
        return 4 * scratch * call.inputs[-2].shape[1]

    def given(call: Call[Any]) -> bool:
        return len(call.inputs) > 4

    fpu = Kernel(
        f"bt_{name}_f32_fpu",
        "recurrent/fpu.c",
        _params,
        needs=FPU,
        fits=lambda call: _packable(call) and given(call),
        pack=_pack_eights,
        scratch=room,
        renews=STATES,
    )
    ref = Kernel(f"bt_{name}_f32_ref", "recurrent/ref.c", _params, fits=given, scratch=room, renews=STATES)
    return (
        fpu,
        replace(fpu, symbol=f"bt_{name}_zero_f32_fpu", fits=_packable, renews=()),
        ref,
        replace(ref, symbol=f"bt_{name}_zero_f32_ref", fits=lambda call: not given(call), renews=()),
    )


LSTM = _kernels("lstm", 4)
GRU = _kernels("gru", 4)
RNN = _kernels("rnn", 0)

"""Rows of the ONNX table: recurrent layers.

A layer is the Graph's own operator where that means the same. Where it does not (other activations, peepholes, clip,
a reset before the product, sequences of different lengths) its steps are written out, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.products import matmul
from baretorch.frontends.aten.sequence import is_zero, join_biases
from baretorch.frontends.lowering import Lowering, Result
from baretorch.frontends.onnx.activations import affine_line, softsign
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import Shape
from baretorch.ops.activations import Elu, LeakyRelu, Softplus, Threshold
from baretorch.ops.elementwise import Add, Clamp, Mul, Sub
from baretorch.ops.functions import Function, Sigmoid, Tanh
from baretorch.ops.logic import Where
from baretorch.ops.recurrent import Gru, Lstm, Recurrent, Rnn

LONGEST = 64  # most time steps that are unrolled


@dataclass(frozen=True)
class SequenceKind:
    """A recurrent layer: the operator, the order of ONNX's gates in it, and the activations."""

    op: Recurrent
    gates: tuple[int, ...]
    activations: tuple[str, ...]


KINDS = {
    "LSTM": SequenceKind(Lstm(), (0, 2, 3, 1), ("Sigmoid", "Tanh", "Tanh")),
    "GRU": SequenceKind(Gru(), (1, 0, 2), ("Sigmoid", "Tanh")),
    "RNN": SequenceKind(Rnn(), (0,), ("Tanh",)),
}


def recurrent(g: OnnxLowering, call: OnnxCall) -> Result:
    """Return Y[T, directions, N, H] and the final states, [directions, N, H]; with `layout` 1 the batch comes first."""
    kind = KINDS[call.op]
    x, w, r = (call.need(i) for i in range(3))
    need_float(g, call.op, x, w, r)
    if call.attribute("input_forget", 0):
        raise CompileError("LSTM: input_forget is not supported", need="gates of their own")
    first = bool(call.attribute("layout", 0))
    if first:
        x = g.permute(x, (1, 0, 2))
    ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}.get(
        call.attribute("direction", "forward")
    )
    if ways is None:
        raise CompileError(f"{call.op}: no direction is called {call.attribute('direction')!r}")
    ys, ends = [], []
    for i, back in enumerate(ways):
        y, *end = _direction(g, call, kind, x, i, back, first)
        ys.append(shapes.unsqueeze(g, y, 1))
        ends.append([shapes.unsqueeze(g, e, 0) for e in end])
    y = shapes.cat(g, ys, 1)
    states = [shapes.cat(g, some, 0) for some in zip(*ends, strict=True)]
    if first:
        return (g.permute(y, (2, 0, 1, 3)), *(g.permute(s, (1, 0, 2)) for s in states))
    return (y, *states)


def _direction(
    g: OnnxLowering, call: OnnxCall, kind: SequenceKind, x: str, i: int, back: bool, first: bool
) -> tuple[str, ...]:
    w, r = (shapes.select(g, call.need(n), 0, i) for n in (1, 2))
    hidden = g.shape(r)[1]
    b_w, b_r = _biases(g, call, i, g.shape(w)[0])
    states = _states(g, call, kind, i, 1 if first else 0, (g.shape(x)[1], hidden))
    lengths = _lengths(g, call, x)
    functions = _activations(call, kind, i)
    whole = _whole(call, kind, functions)
    if whole is None or lengths is not None:
        steps = _Steps(g, call, functions, w, r, b_w, b_r, _peephole(g, call, i))
        return steps.run(x, states, lengths, back)
    w, r, b_w, b_r = (_reorder(g, t, kind.gates) for t in (w, r, b_w, b_r))
    return g.b.add_many(replace(whole, reverse=back), x, *states, w, r, join_biases(g, whole, b_w, b_r, hidden))


def _biases(g: OnnxLowering, call: OnnxCall, i: int, count: int) -> tuple[str, str]:
    """Return the biases of the input's products and of the state's."""
    given = call.input(3)
    if given is None:
        zeros = g.b.const("bias", np.zeros(count, np.float32))
        return zeros, zeros
    b_w, b_r = shapes.split(g, shapes.select(g, given, 0, i), count)
    return b_w, b_r


def _states(g: OnnxLowering, call: OnnxCall, kind: SequenceKind, i: int, axis: int, shape: Shape) -> list[str]:
    """Return the initial states; none if all are zero."""
    given = [call.input(5 + n) for n in range(kind.op.states)]
    if all(s is None or is_zero(g, s) for s in given):
        return []
    zeros = g.b.const("zeros", np.zeros(shape, np.float32))
    return [zeros if s is None else shapes.select(g, s, axis, i) for s in given]


def _reorder(g: Lowering, t: str, gates: Sequence[int]) -> str:
    if len(gates) == 1:
        return t
    parts = shapes.split(g, t, g.shape(t)[0] // len(gates))
    return shapes.cat(g, [parts[i] for i in gates])


def _lengths(g: OnnxLowering, call: OnnxCall, x: str) -> Sequence[int] | None:
    """Return the lengths of the sequences; None if all have the full length."""
    if call.input(4) is None:
        return None
    lengths = g.ints(call.input(4), f"{call.op}: sequence_lens")
    return None if all(n == g.shape(x)[0] for n in lengths) else lengths


def _peephole(g: Lowering, call: OnnxCall, i: int) -> Sequence[str] | None:
    p = call.input(7) if call.op == "LSTM" else None
    return None if p is None else shapes.split(g, shapes.select(g, p, 0, i), g.shape(p)[1] // 3)


# --- activations ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedFunction:
    name: str
    alpha: float
    beta: float

    def __call__(self, g: Lowering, x: str) -> str:
        return FUNCTIONS[self.name](g, x, self.alpha, self.beta)


def _scaled_tanh(g: Lowering, x: str, alpha: float, beta: float) -> str:
    inner = g.b.add(Tanh(), g.b.add(Mul(), x, g.operand(beta, x)))
    return g.b.add(Mul(), inner, g.operand(alpha, x))


def _plain(op: Function) -> Callable[[Lowering, str, float, float], str]:
    return lambda g, x, alpha, beta: g.b.add(op, x)


FUNCTIONS: dict[str, Callable[[Lowering, str, float, float], str]] = {
    "Sigmoid": _plain(Sigmoid()),
    "Tanh": _plain(Tanh()),
    "Relu": lambda g, x, alpha, beta: g.b.add(Clamp(0.0, float("inf")), x),
    "Affine": affine_line,
    "LeakyRelu": lambda g, x, alpha, beta: g.b.add(LeakyRelu(alpha), x),
    "ThresholdedRelu": lambda g, x, alpha, beta: g.b.add(Threshold(alpha, 0.0), x),
    "ScaledTanh": _scaled_tanh,
    "HardSigmoid": lambda g, x, alpha, beta: g.b.add(Clamp(0.0, 1.0), affine_line(g, x, alpha, beta)),
    "Elu": lambda g, x, alpha, beta: g.b.add(Elu(alpha), x),
    "Softsign": lambda g, x, alpha, beta: softsign(g, x),
    "Softplus": lambda g, x, alpha, beta: g.b.add(Softplus(), x),
}
# Defaults of alpha and beta. The attributes list them for the functions that have them, in order.
ALPHA = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0, "ScaledTanh": 1.0}
BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}


def _activations(call: OnnxCall, kind: SequenceKind, direction: int) -> tuple[NamedFunction, ...]:
    """Return the activations of one direction: the attribute lists one direction after the other."""
    names = call.attribute("activations") or kind.activations * 2
    alphas, betas = iter(call.attribute("activation_alpha", ())), iter(call.attribute("activation_beta", ()))
    found = []
    for name in names:
        if name not in FUNCTIONS:
            raise CompileError(f"{call.op}: no activation is called {name!r}", need=", ".join(FUNCTIONS))
        alpha = next(alphas, ALPHA[name]) if name in ALPHA else 0.0
        found.append(NamedFunction(name, float(alpha), float(next(betas, BETA[name]) if name in BETA else 0.0)))
    count = len(kind.activations)
    return tuple(found[direction * count : (direction + 1) * count])


def _whole(call: OnnxCall, kind: SequenceKind, functions: Sequence[NamedFunction]) -> Recurrent | None:
    """Return the Graph's operator if it is equivalent."""
    if call.attribute("clip") is not None or (call.op == "LSTM" and call.input(7) is not None):
        return None
    names = tuple(f.name for f in functions)
    if call.op == "RNN" and names == ("Relu",):
        return Rnn(relu=True)
    if names != kind.activations or (call.op == "GRU" and not call.attribute("linear_before_reset", 0)):
        return None
    return kind.op


# --- written out ----------------------------------------------------------------------------------------------


@dataclass
class _Steps:
    """One direction of a layer, step by step, with weights and biases in ONNX's order of gates."""

    g: OnnxLowering
    call: OnnxCall
    functions: Sequence[NamedFunction]
    w: str
    r: str
    b_w: str
    b_r: str
    peephole: Sequence[str] | None

    def run(self, x: str, states: Sequence[str], lengths: Sequence[int] | None, back: bool) -> tuple[str, ...]:
        """Run all steps. Sequences that have ended keep their states and return zeros. Backwards, each starts at its
        own end."""
        g = self.g
        times, batch, _ = g.shape(x)
        if times > LONGEST:
            raise CompileError(
                f"{self.call.op}: its loop is unrolled, and {times} iterations are too many",
                need=f"at most {LONGEST}, or standard activations, no clip, no peepholes"
                + (", linear_before_reset 1" if self.call.op == "GRU" else ""),
            )
        count = KINDS[self.call.op].op.states
        zeros = g.b.const("zeros", np.zeros((batch, g.shape(self.r)[1]), np.float32))
        now = list(states) or [zeros] * count
        ys: dict[int, str] = {}
        for t in reversed(range(times)) if back else range(times):
            after = self.step(shapes.select(g, x, 0, t), now)
            y = after[0]
            if lengths is not None and any(t >= n for n in lengths):
                there = g.b.const("there", np.array([[t < n] for n in lengths]))
                after = [g.b.add(Where(), there, a, b) for a, b in zip(after, now, strict=True)]
                y = g.b.add(Where(), there, y, zeros)
            now, ys[t] = after, y
        return (shapes.stack(g, [ys[t] for t in range(times)]), *now)

    def step(self, x: str, states: list[str]) -> list[str]:
        steps = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}
        return steps[self.call.op](x, states)

    def _times(self, x: str, weight: str) -> str:
        return matmul(self.g, x, self.g.permute(weight, (1, 0)))

    def _sum(self, *terms: str) -> str:
        y = terms[0]
        for t in terms[1:]:
            y = self.g.b.add(Add(), y, t)
        return y

    def _f(self, i: int, x: str) -> str:
        """Apply an activation to x, limited to [-clip, clip]."""
        clip = self.call.attribute("clip")
        return self.functions[i](self.g, x if clip is None else self.g.b.add(Clamp(-float(clip), float(clip)), x))

    def _mul(self, a: str, b: str) -> str:
        return self.g.b.add(Mul(), a, b)

    def _rnn(self, x: str, states: list[str]) -> list[str]:
        total = self._sum(self._times(x, self.w), self._times(states[0], self.r), self.b_w, self.b_r)
        return [self._f(0, total)]

    def _gru(self, x: str, states: list[str]) -> list[str]:
        (h,) = states
        width = self.g.shape(h)[1]
        z_w, r_w, h_w = shapes.split(self.g, self._sum(self._times(x, self.w), self.b_w), width, 1)
        weights, biases = shapes.split(self.g, self.r, width), shapes.split(self.g, self.b_r, width)
        z = self._f(0, self._sum(z_w, self._times(h, weights[0]), biases[0]))
        r = self._f(0, self._sum(r_w, self._times(h, weights[1]), biases[1]))
        if self.call.attribute("linear_before_reset", 0):
            inner = self._mul(r, self._sum(self._times(h, weights[2]), biases[2]))
        else:
            inner = self._sum(self._times(self._mul(r, h), weights[2]), biases[2])
        new = self._f(1, self._sum(h_w, inner))
        return [self._sum(new, self._mul(z, self.g.b.add(Sub(), h, new)))]

    def _lstm(self, x: str, states: list[str]) -> list[str]:
        h, c = states
        total = self._sum(self._times(x, self.w), self._times(h, self.r), self.b_w, self.b_r)
        i, o, f, new = shapes.split(self.g, total, self.g.shape(h)[1], 1)
        if self.peephole is not None:
            i, f = (self._sum(t, self._mul(p, c)) for t, p in ((i, self.peephole[0]), (f, self.peephole[2])))
        after = self._sum(self._mul(self._f(0, f), c), self._mul(self._f(0, i), self._f(1, new)))
        if self.peephole is not None:
            o = self._sum(o, self._mul(self.peephole[1], after))
        return [self._mul(self._f(0, o), self.functions[2](self.g, after)), after]


ROWS: dict[str, OnnxRow] = dict.fromkeys(KINDS, OnnxRow(recurrent))

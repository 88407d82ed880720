"""One output element from one element of each input: add, mul, clamp, tanh, sigmoid.

The families `Unary` and `Binary` share shape rule and kernel parameters. A further operator is a class with its
function, a row in the C file's list, and a row in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeVar

import numpy as np

from baretorch.ir import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.check import need, need_float32
from baretorch.ops.kernel import Call, Kernel, Params

LOOPS = 4  # nested loops of the binary kernels


@dataclass(frozen=True)
class Unary(Op):
    """x -> f(x), element by element."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        return (Signature(inputs[0].shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.asarray(self.value(inputs[0].astype(np.float64)), np.float32),)

    def value(self, x: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Clamp(Unary):
    """x limited to [lo, hi]; NaN stays."""

    name: ClassVar[str] = "clamp"
    lo: float
    hi: float

    def value(self, x: Array) -> Array:
        return np.clip(x, self.lo, self.hi)


@dataclass(frozen=True)
class Tanh(Unary):
    """The hyperbolic tangent of each element."""

    name: ClassVar[str] = "tanh"

    def value(self, x: Array) -> Array:
        return np.tanh(x)


@dataclass(frozen=True)
class Sigmoid(Unary):
    """1 / (1 + e^-x) of each element."""

    name: ClassVar[str] = "sigmoid"

    def value(self, x: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-x))


@dataclass(frozen=True)
class Binary(Op):
    """a, b -> f(a, b) with NumPy's broadcasting, limited to [lo, hi]."""

    lo: float = -inf
    hi: float = inf

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        a, b = inputs
        shape = _broadcast(a.shape, b.shape)
        need(
            shape is not None,
            self,
            "the shapes do not broadcast",
            inputs,
            "counted from the last, dimensions that are equal or 1",
        )
        assert shape is not None
        return (Signature(shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (i.astype(np.float64) for i in inputs)
        with np.errstate(all="ignore"):
            return (np.asarray(np.clip(self.value(a, b), self.lo, self.hi), np.float32),)

    def value(self, a: Array, b: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Add(Binary):
    """a + b with NumPy's broadcasting, limited to [lo, hi]."""

    name: ClassVar[str] = "add"

    def value(self, a: Array, b: Array) -> Array:
        return np.add(a, b)


@dataclass(frozen=True)
class Mul(Binary):
    """a * b with NumPy's broadcasting, limited to [lo, hi]."""

    name: ClassVar[str] = "mul"

    def value(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


Loops = list[tuple[int, int, int]]


def _loops(call: Call[Binary]) -> Loops:
    """The loops over the output as (count, step in a, step in b), outermost first.

    Two dimensions are one loop where, in both inputs, a turn of the outer is all turns of the inner; equal
    shapes need a single loop.
    """
    a, b = (_steps(t.shape, call.y.shape) for t in call.inputs)
    loops: Loops = []
    for count, step_a, step_b in zip(call.y.shape, a, b, strict=True):
        if count == 1:
            continue
        if loops and loops[-1][1:] == (count * step_a, count * step_b):
            loops[-1] = (loops[-1][0] * count, step_a, step_b)
        else:
            loops.append((count, step_a, step_b))
    return loops


def _steps(shape: Shape, out: Shape) -> Shape:
    """Elements from one index to the next along each dimension of `out`; 0 where `shape` is broadcast."""
    aligned = (1,) * (len(out) - len(shape)) + shape
    return tuple(0 if n == 1 else int(np.prod(aligned[i + 1 :])) for i, n in enumerate(aligned))


def _binary_params(call: Call[Any]) -> Params:
    loops = _loops(call)
    shape, a, b = zip(*([(1, 0, 0)] * (LOOPS - len(loops)) + loops), strict=True)
    return Params(
        "bt_binary_f32",
        (("shape", shape), ("a_step", a), ("b_step", b), ("lo", call.op.lo), ("hi", call.op.hi)),
    )


def _unary_params(call: Call[Any]) -> Params:
    return Params("bt_unary_f32", (("count", call.x.count),))


def _limit_params(call: Call[Clamp]) -> Params:
    return Params("bt_limit_f32", (("count", call.x.count), ("lo", call.op.lo), ("hi", call.op.hi)))


U = TypeVar("U", bound=Unary)
B = TypeVar("B", bound=Binary)


def _unary(op: type[U], params: Callable[[Call[U]], Params] = _unary_params) -> tuple[Kernel[U], ...]:
    return (Kernel(f"bt_{op.name}_f32_ref", "elementwise/ref.c", params),)


def _binary(op: type[B]) -> tuple[Kernel[B], ...]:
    return (
        Kernel(
            f"bt_{op.name}_f32_ref", "elementwise/ref.c", _binary_params, fits=lambda call: len(_loops(call)) <= LOOPS
        ),
    )


CLAMP = _unary(Clamp, _limit_params)
TANH = _unary(Tanh)
SIGMOID = _unary(Sigmoid)
ADD = _binary(Add)
MUL = _binary(Mul)

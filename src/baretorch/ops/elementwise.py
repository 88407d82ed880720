"""Elementwise operators: their base classes, and arithmetic.

Passes look for `Elementwise`, because such an operator does not depend on the order of dimensions. To add one, write a
class with its function in NumPy, an expression in its C file, and a row in the list of its module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import inf
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.families import Limited, Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.loops import nest_loops, permuted_steps, repeat_steps
from baretorch.targets.features import ANY_CPU, FPU, Needs

LOOPS = 4  # nested loops of the kernels with several inputs

FLOAT = (DType.FLOAT32,)
INTEGERS = (DType.INT32, DType.INT64)
NUMBERS = (*FLOAT, *INTEGERS)
ORDERED = (*NUMBERS, DType.INT8)

# How symbols of kernels spell the element types.
TYPE_NAMES = {
    DType.FLOAT32: "f32",
    DType.INT8: "s8",
    DType.UINT8: "u8",
    DType.INT16: "s16",
    DType.INT32: "s32",
    DType.INT64: "s64",
    DType.BOOL: "bool",
}


@dataclass(frozen=True)
class FormatNames:
    """Hold the names of an operator without attributes in each format, separated by spaces. Each format's table gets a
    row for each name. Without a name a format has no such operator, or a row of its own."""

    aten: str
    onnx: str
    tflite: str
    tinygrad: str


@dataclass(frozen=True)
class Elementwise(Pointwise):
    """f of the elements at the same place of each input, with NumPy's broadcasting."""

    value: ClassVar[Callable[..., Any]]  # f in NumPy; floats have double precision
    source: ClassVar[str] = "elementwise/ref.c"
    types: ClassVar[tuple[DType, ...]] = FLOAT  # of the inputs
    result: ClassVar[DType | None] = None  # of the output; None: as the inputs
    names: ClassVar[FormatNames]

    def __init_subclass__(
        cls,
        value: Callable[..., Any] | None = None,
        aten: str = "",
        onnx: str = "",
        tflite: str = "",
        tinygrad: str = "",
        **properties: Any,
    ) -> None:
        super().__init_subclass__(**properties)
        cls.names = FormatNames(aten, onnx, tflite, tinygrad)
        if value is not None:
            cls.value = staticmethod(value)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return (Signature(broadcast(self, inputs), self.result or self.common(inputs)),)

    def common(self, inputs: Sequence[Tensor]) -> DType:
        """Return the type that all these inputs have."""
        if self.types == FLOAT:
            need_float32(self, inputs)
        dtype = inputs[0].dtype
        need(
            dtype in self.types and all(t.dtype is dtype for t in inputs),
            self,
            " and ".join(dict.fromkeys(t.dtype.label for t in inputs)) + " is not supported",
            inputs,
            f"{' or '.join(t.label for t in self.types)}, the same for every input",
            "cast the tensors in the model",
        )
        return dtype

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        wide = (i.astype(np.float64) if i.dtype == np.float32 else i for i in inputs)
        with np.errstate(all="ignore"):
            y = np.asarray(self.value(*wide))
            return (y.astype(np.float32) if y.dtype == np.float64 else y,)

    def params(self, call: Call[Any]) -> Params:
        raise NotImplementedError

    @classmethod
    def kernels(cls) -> tuple[Kernel[Any], ...]:
        """Return a kernel per element type of the last input."""

        def fits(dtype: DType, call: Call[Any]) -> bool:
            loops = 1 if len(call.inputs) == 1 else len(loops_of(call))
            return call.inputs[-1].dtype is dtype and loops <= LOOPS

        return tuple(kernel(f"bt_{cls.name}_{TYPE_NAMES[t]}_ref", cls.source, partial(fits, t)) for t in cls.types)


@dataclass(frozen=True)
class Unary(Elementwise):
    """f(x) of each element. The fields of the operator are those of its C struct, after the count."""

    struct: ClassVar[str] = "bt_unary"

    def params(self, call: Call[Any]) -> Params:
        own = tuple((f.name, getattr(self, f.name)) for f in fields(self))
        return Params(self.struct, (("count", call.x.count), *own))


@dataclass(frozen=True)
class Binary(Elementwise):
    """f(a, b) of each pair of elements."""

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_binary", loop_fields(call))


@dataclass(frozen=True)
class Arithmetic(Limited, Binary, types=NUMBERS):
    """f(a, b) of each pair of elements, for floats limited to [lo, hi]."""

    lo: float = -inf
    hi: float = inf

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (y,) = super().reference(*inputs)
        return (y if (self.lo, self.hi) == (-inf, inf) else np.clip(y, self.lo, self.hi),)

    def params(self, call: Call[Any]) -> Params:
        if call.y.dtype is not DType.FLOAT32:
            return super().params(call)
        return Params("bt_binary_f32", (*loop_fields(call), ("lo", self.lo), ("hi", self.hi)))

    @classmethod
    def kernels(cls) -> tuple[Kernel[Any], ...]:
        def plain(call: Call[Any]) -> bool:
            return all((t.shape, t.dtype) == (call.y.shape, DType.FLOAT32) for t in call.inputs)

        fast = kernel(f"bt_{cls.name}_f32_fpu", "elementwise/fpu.c", plain, FPU)
        return (*((fast,) if cls in (Add, Sub, Mul) else ()), *super().kernels())


# --- arithmetic -------------------------------------------------------------------------------------------


class Add(Arithmetic, name="add", value=np.add):
    """a + b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""


class Sub(Arithmetic, name="sub", value=np.subtract):
    """a - b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""


class Mul(Arithmetic, name="mul", value=np.multiply):
    """a * b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""


class Div(Arithmetic, name="div", value=np.divide, types=FLOAT):
    """a / b with NumPy's broadcasting, limited to [lo, hi]."""


@dataclass(frozen=True)
class FloorDivide(Binary, name="floor_divide", tflite="FLOOR_DIV", types=NUMBERS):
    """a / b rounded down. An integer divided by 0, where PyTorch raises, gives 0."""

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.floor_divide(a, b))  # NumPy's x // 0 is 0 too


@dataclass(frozen=True)
class TruncDivide(Binary, name="trunc_divide", types=NUMBERS):
    """a / b rounded toward zero. An integer divided by 0, where PyTorch raises, gives 0."""

    def value(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.asarray(np.trunc(np.divide(a, b).astype(np.float32)))  # of the float that PyTorch rounds
        return np.asarray(np.where(b == 0, 0, (a - np.fmod(a, b)) // b))


@dataclass(frozen=True)
class Remainder(Binary, name="remainder", aten="remainder", tflite="FLOOR_MOD", types=NUMBERS):
    """a - b floor(a / b), as Python's %. The remainder of an integer by 0, where PyTorch raises, is the integer."""

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.remainder(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.remainder(a, b)))


@dataclass(frozen=True)
class Fmod(Binary, name="fmod", aten="fmod", tinygrad="fmod", types=NUMBERS):
    """a - b trunc(a / b), as C's %. An integer modulo 0 is that integer; PyTorch raises an error."""

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.fmod(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.fmod(a, b)))


class Minimum(
    Binary, name="minimum", value=np.minimum, aten="minimum", tflite="MINIMUM", tinygrad="minimum", types=ORDERED
):
    """The lesser of a and b; NaN if either is."""


class Maximum(
    Binary, name="maximum", value=np.maximum, aten="maximum", tflite="MAXIMUM", tinygrad="maximum", types=ORDERED
):
    """The greater of a and b; NaN if either is."""


class Pow(Binary, name="pow", value=np.power, tflite="POW"):
    """a to the power b, as C's pow. Results below the least normal number are 0."""


@dataclass(frozen=True)
class Clamp(Limited, Unary, name="clamp", struct="bt_limit_f32"):
    """x limited to [lo, hi]; NaN stays."""

    lo: float
    hi: float

    def value(self, x: Array) -> Array:
        return np.clip(x, self.lo, self.hi)


# --- shapes and kernels -----------------------------------------------------------------------------------


def broadcast(op: Op, inputs: Sequence[Tensor]) -> Shape:
    try:
        return np.broadcast_shapes(*(t.shape for t in inputs))
    except ValueError:
        wanted = "counted from the last, dimensions that are equal or 1"
        need(False, op, "the shapes do not broadcast", inputs, wanted)
        raise


BroadcastLoop = tuple[int, ...]  # count, and the step in each input


def loops_of(call: Call[Any]) -> list[BroadcastLoop]:
    """Return the loops over the output, outermost first. Equal shapes need a single loop."""
    y = call.y.shape
    if call.y.count == 0:
        return [(0, *(0 for _ in call.inputs))] * LOOPS  # not even the outermost loop runs
    counts, walks = nest_loops(y, *(repeat_steps(t.shape, permuted_steps(t.shape, ()), y) for t in call.inputs))
    return list(zip(counts, *walks, strict=True))


def loop_fields(call: Call[Any]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the fields `shape`, and `a_step`, `b_step` … for each input."""
    loops = loops_of(call)
    padded = [(1, *(0 for _ in call.inputs))] * (LOOPS - len(loops)) + loops
    names = ("shape", "a_step", "b_step", "c_step")[: 1 + len(call.inputs)]
    return tuple(zip(names, zip(*padded, strict=True), strict=True))


def kernel(symbol: str, source: str, fits: Callable[[Call[Any]], bool], needs: Needs = ANY_CPU) -> Kernel[Any]:
    """Return a kernel that goes forward from element to element."""

    def params(call: Call[Any]) -> Params:
        params: Params = call.op.params(call)
        return params

    return Kernel(symbol, source, params, needs, fits, overlap=overlap.elementwise, splits=cut.outermost)


OPS: tuple[type[Elementwise], ...] = (
    *(Add, Sub, Mul, Div),
    *(FloorDivide, TruncDivide, Remainder, Fmod),
    *(Minimum, Maximum, Pow, Clamp),
)

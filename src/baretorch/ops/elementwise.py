"""One output element from the elements at its place in each input: the families, and arithmetic.

`Elementwise` is what passes look for: such an operator does not care about the order of dimensions. `Unary`, `Binary`
and (in logic.py) `Where` share shape rule, reference and kernel parameters. A further operator is a class with its
meaning in NumPy, an expression in its C file, and a name in the list of its module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.limits import both
from baretorch.ops.helpers.names import FormatNames
from baretorch.targets.features import ANY_CPU, FPU, Needs

LOOPS = 4  # nested loops of the kernels with several inputs

FLOAT = (DType.FLOAT32,)
INTEGERS = (DType.INT32, DType.INT64)
NUMBERS = (*FLOAT, *INTEGERS)

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
class Elementwise(Op):
    """f of the elements at the same place of each input, with NumPy's broadcasting."""

    source: ClassVar[str] = "elementwise/ref.c"
    types: ClassVar[tuple[DType, ...]] = FLOAT  # of the inputs
    result: ClassVar[DType | None] = None  # of the output; None: as the inputs
    names: ClassVar[FormatNames] = FormatNames()  # of an operator without attributes

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return (Signature(broadcast(self, inputs), self.result or self.common(inputs)),)

    def common(self, inputs: Sequence[Tensor]) -> DType:
        """The type of all these inputs."""
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
            y = np.asarray(self.meaning(*wide))
            return (y.astype(np.float32) if y.dtype == np.float64 else y,)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.at_the_same_place(self, inputs, y, axis, start, stop)

    @property
    def meaning(self) -> Callable[..., Array]:
        """f in NumPy; floats arrive and leave in double precision."""
        raise NotImplementedError

    def params(self, call: Call[Any]) -> Params:
        raise NotImplementedError

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


@dataclass(frozen=True)
class Unary(Elementwise):
    """f(x) of each element. The fields of the operator are those of its C struct, after the count."""

    struct: ClassVar[str] = "bt_unary"

    @property
    def meaning(self) -> Callable[..., Array]:
        return self.value

    def value(self, x: Array) -> Array:
        raise NotImplementedError

    def params(self, call: Call[Any]) -> Params:
        own = tuple((f.name, getattr(self, f.name)) for f in fields(self))
        return Params(self.struct, (("count", call.x.count), *own))


@dataclass(frozen=True)
class Binary(Elementwise):
    """f(a, b) of each pair of elements."""

    @property
    def meaning(self) -> Callable[..., Array]:
        return self.value

    def value(self, a: Array, b: Array) -> Array:
        raise NotImplementedError

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_binary", loop_fields(call))


@dataclass(frozen=True)
class Arithmetic(Binary):
    """f(a, b) of each pair of elements, for floats limited to [lo, hi]."""

    types: ClassVar[tuple[DType, ...]] = NUMBERS
    lo: float = -inf
    hi: float = inf

    @property
    def meaning(self) -> Callable[..., Array]:
        if self.lo == -inf and self.hi == inf:
            return self.value
        return lambda a, b: np.clip(self.value(a, b), self.lo, self.hi)

    def params(self, call: Call[Any]) -> Params:
        if call.y.dtype is not DType.FLOAT32:
            return super().params(call)
        return Params("bt_binary_f32", (*loop_fields(call), ("lo", self.lo), ("hi", self.hi)))

    def clamped(self, lo: float, hi: float) -> Op | None:
        lo, hi = both((self.lo, self.hi), (lo, hi))
        return replace(self, lo=lo, hi=hi)


# --- arithmetic -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Add(Arithmetic):
    """a + b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""

    name: ClassVar[str] = "add"

    def value(self, a: Array, b: Array) -> Array:
        return np.add(a, b)


@dataclass(frozen=True)
class Sub(Arithmetic):
    """a - b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""

    name: ClassVar[str] = "sub"

    def value(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)


@dataclass(frozen=True)
class Mul(Arithmetic):
    """a * b with NumPy's broadcasting, limited to [lo, hi]. Integers wrap."""

    name: ClassVar[str] = "mul"

    def value(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)


@dataclass(frozen=True)
class Div(Arithmetic):
    """a / b with NumPy's broadcasting, limited to [lo, hi]."""

    name: ClassVar[str] = "div"
    types: ClassVar[tuple[DType, ...]] = FLOAT

    def value(self, a: Array, b: Array) -> Array:
        return np.divide(a, b)


@dataclass(frozen=True)
class FloorDivide(Binary):
    """a / b rounded down. An integer divided by 0, where PyTorch raises, gives 0."""

    name: ClassVar[str] = "floor_divide"
    names: ClassVar[FormatNames] = FormatNames(tflite="FLOOR_DIV")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.floor_divide(a, b))  # NumPy's x // 0 is 0 too


@dataclass(frozen=True)
class TruncDivide(Binary):
    """a / b rounded toward zero. An integer divided by 0, where PyTorch raises, gives 0."""

    name: ClassVar[str] = "trunc_divide"
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.asarray(np.trunc(np.divide(a, b).astype(np.float32)))  # of the float that PyTorch rounds
        return np.asarray(np.where(b == 0, 0, (a - np.fmod(a, b)) // b))


@dataclass(frozen=True)
class Remainder(Binary):
    """a - b floor(a / b), as Python's %. The remainder of an integer by 0, where PyTorch raises, is the integer."""

    name: ClassVar[str] = "remainder"
    names: ClassVar[FormatNames] = FormatNames(aten="remainder", tflite="FLOOR_MOD")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.remainder(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.remainder(a, b)))


@dataclass(frozen=True)
class Fmod(Binary):
    """a - b trunc(a / b), as C's %. The remainder of an integer by 0, where PyTorch raises, is the integer."""

    name: ClassVar[str] = "fmod"
    names: ClassVar[FormatNames] = FormatNames(aten="fmod", tinygrad="fmod")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, a: Array, b: Array) -> Array:
        return np.asarray(np.fmod(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.fmod(a, b)))


@dataclass(frozen=True)
class Minimum(Binary):
    """The lesser of a and b; NaN if either is."""

    name: ClassVar[str] = "minimum"
    names: ClassVar[FormatNames] = FormatNames(aten="minimum", tflite="MINIMUM", tinygrad="minimum")
    types: ClassVar[tuple[DType, ...]] = (*NUMBERS, DType.INT8)

    def value(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


@dataclass(frozen=True)
class Maximum(Binary):
    """The greater of a and b; NaN if either is."""

    name: ClassVar[str] = "maximum"
    names: ClassVar[FormatNames] = FormatNames(aten="maximum", tflite="MAXIMUM", tinygrad="maximum")
    types: ClassVar[tuple[DType, ...]] = (*NUMBERS, DType.INT8)

    def value(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Pow(Binary):
    """a to the power b, as C's pow. Results below the least normal number are 0."""

    name: ClassVar[str] = "pow"
    names: ClassVar[FormatNames] = FormatNames(tflite="POW")

    def value(self, a: Array, b: Array) -> Array:
        return np.power(a, b)


@dataclass(frozen=True)
class Clamp(Unary):
    """x limited to [lo, hi]; NaN stays."""

    name: ClassVar[str] = "clamp"
    struct: ClassVar[str] = "bt_limit_f32"
    lo: float
    hi: float

    def value(self, x: Array) -> Array:
        return np.clip(x, self.lo, self.hi)

    def clamped(self, lo: float, hi: float) -> Op | None:
        lo, hi = both((self.lo, self.hi), (lo, hi))
        return replace(self, lo=lo, hi=hi)


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
    """The loops over the output, outermost first.

    Two dimensions are one loop where, in every input, a turn of the outer is all turns of the inner; equal
    shapes need a single loop.
    """
    if call.y.count == 0:
        return [(0, *(0 for _ in call.inputs))] * LOOPS  # not even the outermost turns
    steps = [_steps(t.shape, call.y.shape) for t in call.inputs]
    loops: list[BroadcastLoop] = []
    for count, *here in zip(call.y.shape, *steps, strict=True):
        if count == 1:
            continue
        if loops and loops[-1][1:] == tuple(count * s for s in here):
            loops[-1] = (loops[-1][0] * count, *here)
        else:
            loops.append((count, *here))
    return loops


def _steps(shape: Shape, out: Shape) -> Shape:
    """Elements from one index to the next along each dimension of `out`; 0 where `shape` is broadcast."""
    aligned = (1,) * (len(out) - len(shape)) + shape
    return tuple(0 if n == 1 else int(np.prod(aligned[i + 1 :])) for i, n in enumerate(aligned))


def loop_fields(call: Call[Any]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`shape`, and `a_step`, `b_step` … for each input."""
    loops = loops_of(call)
    padded = [(1, *(0 for _ in call.inputs))] * (LOOPS - len(loops)) + loops
    names = ("shape", "a_step", "b_step", "c_step")[: 1 + len(call.inputs)]
    return tuple(zip(names, zip(*padded, strict=True), strict=True))


def kernels(op: type[Elementwise]) -> tuple[Kernel[Any], ...]:
    """One per element type, which its last input shows."""

    def fits(dtype: DType) -> Callable[[Call[Any]], bool]:
        return lambda call: call.inputs[-1].dtype is dtype and (len(call.inputs) == 1 or len(loops_of(call)) <= LOOPS)

    def params(call: Call[Any]) -> Params:
        params: Params = call.op.params(call)
        return params

    def plain(call: Call[Any]) -> bool:
        return all((t.shape, t.dtype) == (call.y.shape, DType.FLOAT32) for t in call.inputs)

    def row(symbol: str, source: str, fits: Callable[[Call[Any]], bool], needs: Needs) -> Kernel[Any]:
        return Kernel(symbol, source, params, needs, fits, overlap=overlap.elementwise, splits=cut.outermost)

    fast = row(f"bt_{op.name}_f32_fpu", "elementwise/fpu.c", plain, FPU)
    portable = (row(f"bt_{op.name}_{TYPE_NAMES[t]}_ref", op.source, fits(t), ANY_CPU) for t in op.types)
    return (*((fast,) if op in (Add, Sub, Mul) else ()), *portable)


OPS: tuple[type[Elementwise], ...] = (
    Add,
    Sub,
    Mul,
    Div,
    FloorDivide,
    TruncDivide,
    Remainder,
    Fmod,
    Minimum,
    Maximum,
    Pow,
    Clamp,
)

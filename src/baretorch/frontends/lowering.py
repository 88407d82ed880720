"""The Graph under construction while a program is lowered, and helpers shared by the tables of all frontends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import HALVES, Array, Builder, DType, Node, Op, Tensor
from baretorch.ops import OPS, halves
from baretorch.ops.elementwise import Elementwise, FormatNames
from baretorch.ops.layout import Permute, Reshape

Ints: TypeAlias = Sequence[int]
Scalar: TypeAlias = int | float
Result: TypeAlias = str | tuple[str, ...]
Build: TypeAlias = Callable[..., Result]

# Exceptions of rows for sizes and numbers that do not fit together, as in damaged files. Others are bugs of Baretorch.
UNFIT = (ValueError, IndexError, KeyError, TypeError, ArithmeticError)
DTYPES = f"one of {', '.join(d.label for d in DType if not d.is_half)}"
TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)


def named_operators(names_in: Callable[[FormatNames], str]) -> dict[str, type[Elementwise]]:
    """Return the operators without attributes by their names in a format; ops/ has their names in all formats."""
    elementwise = [row.op for row in OPS if issubclass(row.op, Elementwise)]
    return {name: op for op in elementwise for name in names_in(op.names).split()}


def unsupported(
    names: Collection[str], at: Sequence[str], try_: Sequence[str] | str, one: str = "operator", many: str = "operators"
) -> CompileError:
    """Return the error that names everything that has no row."""
    some = f"{many} are" if len(names) > 1 else f"{one} is"
    return CompileError(f"{len(names)} {some} not supported: {', '.join(names)}", at=at, try_=try_)


def note_halves(types: Collection[str]) -> tuple[str, ...]:
    """Return a note if some of these types are float16 or bfloat16."""
    found = " and ".join(label for label in HALVES if label in types)
    return (f"{found}: computed in float32; inputs and outputs are stored as declared",) if found else ()


class Complex(str):
    """The name of a float tensor that represents a complex one: its last dimension is real and imaginary part."""


class NotConstant(CompileError):
    """Raised if a value that must be known before the image is built depends on this tensor."""

    def __init__(self, what: str, tensor: Tensor | None) -> None:
        super().__init__(f"{what} must be a constant of the model", have=str(tensor))
        self.tensor = tensor


@dataclass
class Lowering:
    """The Graph under construction."""

    b: Builder

    def __getitem__(self, name: str) -> Tensor:
        return self.b.tensors[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.b.tensors[name].shape

    def axis(self, x: str, axis: int) -> int:
        rank = len(self.shape(x))
        return axis + rank if axis < 0 else axis

    def constant(self, name: str | None, what: str) -> Array:
        data = None if name is None else self[name].data
        if data is None:
            raise NotConstant(what, None if name is None else self[name])
        return data

    def operand(self, x: str | Scalar, like: str) -> str:
        """Return a tensor, or a Python number as a constant of the other operand's type."""
        if isinstance(x, str):
            return x
        return self.b.const("scalar", np.array(x, self[like].dtype.numpy))

    def widen_half(self, x: str) -> str:
        """Return the float32 of an input that is stored as float16 or bfloat16; others unchanged."""
        dtype = self[x].dtype
        return self.b.add(halves.FROM[dtype], x, name=f"{x}_float32") if dtype.is_half else x

    def round_to_half(self, y: str, dtype: DType) -> str:
        """Return an output as float16 or bfloat16."""
        return self.b.add(halves.TO[dtype], y, name=f"{y}_{dtype.label}")

    def permute(self, x: str, dims: Ints) -> str:
        name = f"{x}_permuted" if self[x].data is not None else None  # a weight keeps its name
        return self.b.add(Permute(tuple(dims)), x, name=name)

    def reshape(self, x: str, shape: Ints) -> str:
        name = f"{x}_reshaped" if self[x].data is not None else None
        return x if tuple(shape) == self.shape(x) else self.b.add(Reshape(tuple(shape)), x, name=name)

    def nhwc(self, op: Op, x: str, *constants: str, dims: int = 2) -> str:
        """Apply an NHWC operator to x[N, C, H, W], or if `dims` is 1 to x[N, C, L], as images of height 1. The batch
        may be missing."""
        shape = self.shape(x)
        if len(shape) not in (dims + 1, dims + 2):
            sizes = "C, H, W" if dims == 2 else "C, L"
            raise CompileError(
                f"{op.name}: the input has {len(shape)} dimensions",
                have=str(self[x]),
                need=f"x[N, {sizes}] or x[{sizes}]",
            )
        *batch, channels = shape[:-dims]
        image = self.reshape(x, (*(batch or [1]), channels, *(1,) * (2 - dims), *shape[-dims:]))
        y = self.permute(self.b.add(op, self.permute(image, TO_NHWC), *constants), TO_NCHW)
        made = self.shape(y)
        return self.reshape(y, (*batch, made[1], *made[-dims:]))


def known_value(g: Lowering, name: str) -> Array | None:
    """Return the value of a tensor that depends on constants only. Each node is computed once, however many nodes read
    it."""
    if g[name].data is not None:
        return g[name].data
    makers = {output: node for node in g.b.nodes for output in node.outputs}
    found: dict[str, Array | None] = {}

    def value(name: str) -> Array | None:
        if name not in found:
            found[name] = compute(name, makers[name]) if name in makers else g[name].data
        return found[name]

    def compute(name: str, maker: Node) -> Array | None:
        inputs = [x for x in map(value, maker.inputs) if x is not None]
        if len(inputs) < len(maker.inputs):
            return None
        return np.asarray(maker.op.reference(*inputs)[maker.outputs.index(name)], g[name].dtype.numpy)

    return value(name)


def pair(value: Ints | int) -> tuple[int, int]:
    values = (value,) if isinstance(value, int) else tuple(value)
    return (values[0], values[-1])


def spatial(value: Ints | int, dims: int, height: int) -> tuple[int, int]:
    """Return an attribute's value for height and width; one-dimensional signals have this `height`."""
    return pair(value) if dims == 2 else (height, pair(value)[1])


def sides(padding: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the padding above, below, left and right."""
    h, w = padding
    return (h, h, w, w)

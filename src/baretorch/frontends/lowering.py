"""The Graph under construction while an ATen program is lowered, and what the rows of the table share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.program import Arg, AtenProgram, Ref
from baretorch.ir import Array, Builder, Op, Tensor
from baretorch.ops.layout import Permute

Ints: TypeAlias = Sequence[int]
Scalar: TypeAlias = int | float
Result: TypeAlias = str | tuple[str, ...]

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)


@dataclass
class Lowering:
    """The Graph being made, and which of its tensors each ATen value became."""

    b: Builder
    program: AtenProgram
    values: dict[str, str] = field(default_factory=dict)

    def resolve(self, arg: Arg) -> Any:
        if isinstance(arg, Ref):
            return self.value(arg.name)
        if isinstance(arg, tuple):
            return tuple(self.resolve(a) for a in arg)
        return arg

    def value(self, name: str) -> str:
        if name not in self.values:  # a constant, on its first use
            self.values[name] = self.b.const(name, self.program.constants[name])
        return self.values[name]

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
            raise CompileError(f"{what} must be a constant of the model", have=str(name and self[name]))
        return data

    def operand(self, x: str | Scalar, like: str) -> str:
        """A tensor, or a Python number as a constant of the other operand's type."""
        if isinstance(x, str):
            return x
        return self.b.const("scalar", np.array(x, self[like].dtype.numpy))

    def permute(self, x: str, dims: Ints) -> str:
        name = f"{x}_permuted" if self[x].data is not None else None  # a weight keeps its name
        return self.b.add(Permute(tuple(dims)), x, name=name)

    def nhwc(self, op: Op, x: str, *constants: str) -> str:
        """Apply an NHWC operator to an NCHW value."""
        return self.permute(self.b.add(op, self.permute(x, TO_NHWC), *constants), TO_NCHW)


def pair(value: Ints | int) -> tuple[int, int]:
    values = (value,) if isinstance(value, int) else tuple(value)
    return (values[0], values[-1])


def sides(padding: Ints | int) -> tuple[int, int, int, int]:
    h, w = pair(padding)
    return (h, h, w, w)


def four(around: Ints) -> tuple[int, int, int, int]:
    top, bottom, left, right = around
    return (top, bottom, left, right)


def image(g: Lowering, what: str, x: str) -> None:
    if len(g.shape(x)) != 4:
        raise CompileError(f"{what}: only batches of 2-D images are supported", have=str(g[x]), need="x[N, C, H, W]")

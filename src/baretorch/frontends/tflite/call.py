"""A call of a TFLite operator, as a row of the table receives it, with the operator's options."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from baretorch.errors import CompileError
from baretorch.frontends.flatbuffer import Table
from baretorch.frontends.flexbuffer import read_integers
from baretorch.frontends.tflite.schema import KIND, TfTensor, damaged

Limits = tuple[float, float]
NO_LIMITS: Limits = (-inf, inf)
_ACTIVATIONS: dict[int, Limits] = {0: NO_LIMITS, 1: (0.0, inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_OTHERS = {4: "TANH", 5: "SIGN_BIT"}
TANH = 4


@dataclass(frozen=True)
class Field:
    """An option: its slot in the operator's table of options, its type in `struct`'s notation, and its default."""

    slot: int
    format: str = "i"
    default: int = 0


@dataclass(frozen=True)
class TfliteCall:
    """An operator of the file: the Graph's tensors for its inputs, None for a missing one; the file's own tensors; and
    its options."""

    name: str
    inputs: tuple[str | None, ...]
    operands: tuple[TfTensor | None, ...]
    outputs: tuple[TfTensor, ...]
    options: Table | None
    between: tuple[TfTensor | None, ...] = ()
    attributes: bytes = b""

    @property
    def y(self) -> TfTensor:
        return self.outputs[0]

    def x(self, i: int = 0) -> str:
        """Return a required input."""
        name = self.maybe(i)
        if name is None:
            raise CompileError(f"{self.name}: input {i} is missing")
        return name

    def maybe(self, i: int) -> str | None:
        return self.inputs[i] if i < len(self.inputs) else None

    def given(self) -> tuple[str, ...]:
        """Return all inputs, none of which may be missing."""
        return tuple(self.x(i) for i in range(len(self.inputs)))

    def option(self, field: Field) -> int:
        return field.default if self.options is None else self.options.integer(field.slot, field.format, field.default)

    def real(self, slot: int) -> float:
        return 0.0 if self.options is None else self.options.real(slot, "f")

    def text(self, slot: int) -> str:
        return "" if self.options is None else self.options.text(slot)

    def attribute(self, name: str) -> int:
        """Return an attribute of a custom operator."""
        attributes = read_integers(self.attributes, KIND)
        if name not in attributes:
            raise damaged(f"{self.name} has no attribute {name}")
        if not -(1 << 31) <= attributes[name] < 1 << 31:
            raise damaged(f"{self.name}: {name} is beyond 32 bits")
        return attributes[name]

    def limits(self, slot: int) -> Limits:
        """Return the limits of the activation that is fused with the operator."""
        kind = self.option(Field(slot, "b"))
        if kind not in _ACTIVATIONS:
            named = _OTHERS.get(kind, f"number {kind}")
            raise CompileError(
                f"{self.name}: the fused activation {named} is not supported", need="RELU, RELU6 or none"
            )
        return _ACTIVATIONS[kind]

"""The values that names of an ONNX graph stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from baretorch.ir.graph import Array


@dataclass(frozen=True)
class Absent:
    """A value that could not be made, and why it cannot be read; without a reason, that is known already."""

    reason: str = ""


OMITTED = Absent("an input that is left out")  # of a function
Value: TypeAlias = str | Array | Absent  # the name of a Graph tensor, a constant that is none yet, or none of them


@dataclass(frozen=True)
class Stored:
    """What an int8 tensor of the Graph holds of a file's int8 or, less by 128, uint8 numbers. `zero` is the file's."""

    scale: float
    zero: int
    unsigned: bool


@dataclass
class Scope:
    """What the names of a graph stand for. A graph within a node sees those around it; a function does not."""

    values: dict[str, Value]
    outer: Scope | None = None
    prefix: str = ""  # of the names of layers
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of a function: AttributeProtos of the call
    opsets: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    def holder(self, name: str) -> Scope | None:
        """The innermost scope that knows a name."""
        if name in self.values:
            return self
        return self.outer.holder(name) if self.outer else None

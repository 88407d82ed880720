"""The values of the names of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from baretorch.ir.graph import Array


@dataclass(frozen=True)
class Absent:
    """A value that could not be computed, with the reason; without a reason, it was already reported."""

    reason: str = ""


OMITTED = Absent("an input that is left out")  # of a function
Value: TypeAlias = str | Array | Absent  # the name of a Graph tensor, a constant that is none yet, or none of them


@dataclass(frozen=True)
class StoredInt8:
    """An int8 tensor of the Graph that holds a file's int8 numbers, or its uint8 numbers minus 128. `zero` is the
    file's zero point."""

    scale: float
    zero: int
    unsigned: bool


@dataclass
class Scope:
    """The values of a graph's names. A graph inside a node sees those of its parents; a function does not."""

    values: dict[str, Value]
    outer: Scope | None = None
    prefix: str = ""  # of the names of layers
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of a function: AttributeProtos of the call
    opsets: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    def holder(self, name: str) -> Scope | None:
        """Return the innermost scope that contains a name."""
        if name in self.values:
            return self
        return self.outer.holder(name) if self.outer else None

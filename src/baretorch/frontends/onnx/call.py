"""The call of an operator of ONNX that a row of the table gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baretorch.errors import CompileError

MICROSOFT = "com.microsoft"  # operators of onnxruntime's own, which its quantizer writes


def key(op: str, domain: str = "") -> str:
    """What a row is filed under: the operator's name, with the domain before it if that is not ONNX's own."""
    return f"{domain}::{op}" if domain not in ("", "ai.onnx") else op


@dataclass(frozen=True)
class Call:
    """A node: its operator as of `version` of the domain's opset, its inputs as names of Graph tensors, with None for
    one that is left out, how many outputs it has, and its attributes: numbers, texts, tuples of those, arrays, and
    graphs of ONNX as they are."""

    op: str
    domain: str
    version: int
    name: str
    inputs: tuple[str | None, ...]
    outputs: int
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, i: int) -> str | None:
        """The input at this place; None if it is left out."""
        return self.inputs[i] if i < len(self.inputs) else None

    def need(self, i: int) -> str:
        """The input at this place, which must be there."""
        x = self.input(i)
        if x is None:
            raise CompileError(f"{self.op}: input {i} is missing")
        return x

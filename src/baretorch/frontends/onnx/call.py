"""A call of an ONNX operator, as a row of the table receives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baretorch.errors import CompileError

MICROSOFT = "com.microsoft"  # operators of onnxruntime's own, which its quantizer writes


def key(op: str, domain: str = "") -> str:
    """Return a row's key: the operator's name, preceded by the domain if that is not ONNX's own."""
    return f"{domain}::{op}" if domain not in ("", "ai.onnx") else op


@dataclass(frozen=True)
class OnnxCall:
    """A node: its operator in `version` of the domain's opset, its inputs as names of Graph tensors (None for a missing
    one), its number of outputs, and its attributes: numbers, texts, tuples of those, arrays, and ONNX graphs."""

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
        """Return an input, or None if it is missing."""
        return self.inputs[i] if i < len(self.inputs) else None

    def need(self, i: int) -> str:
        """Return a required input."""
        x = self.input(i)
        if x is None:
            raise CompileError(f"{self.op}: input {i} is missing")
        return x

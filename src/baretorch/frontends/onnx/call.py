"""A call of an ONNX operator, as a row of the table receives it, and helpers of rows: for small integers, which are
computed as int32, for required types, and for tables, which a few bytes of a file could make arbitrarily large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import DType, Op

MICROSOFT = "com.microsoft"  # operators of onnxruntime's own, which its quantizer writes
ML = "ai.onnx.ml"  # classic machine learning, as skl2onnx writes it


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


SMALL = (DType.INT8, DType.UINT8, DType.INT16)


def widen(g: Lowering, x: str) -> str:
    """Return bytes and shorts as int32, for operators without kernels of their size; others unchanged."""
    return cast(g, x, DType.INT32) if g[x].dtype in SMALL else x


def apply_wide(g: Lowering, op: Op, *operands: str) -> str:
    """Apply an operator that wraps, in int32 if necessary, and convert back to the operands' type."""
    return cast(g, g.b.add(op, *(widen(g, x) for x in operands)), g[operands[0]].dtype)


def is_float(g: Lowering, x: str) -> bool:
    return g[x].dtype is DType.FLOAT32


def need_float(g: Lowering, op: str, *operands: str) -> None:
    for x in operands:
        if not is_float(g, x):
            raise CompileError(
                f"{op}: {g[x].dtype.label} is not supported", have=str(g[x]), need="float32", try_="a Cast before it"
            )


def need_room(op: str, *counts: int) -> None:
    """Raise CompileError if a table with these dimensions is unreasonably large."""
    if 4 * prod(counts) > ROOM:
        raise too_large(f"{op} needs a table of {' x '.join(f'{n:,}' for n in counts)} numbers")

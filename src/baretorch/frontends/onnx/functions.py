"""Expands operators that ONNX defines by others: their function bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper


@dataclass(frozen=True)
class OnnxFunction:
    """A FunctionProto, with the default attributes of its calls."""

    proto: Any
    defaults: tuple[Any, ...] = ()


def has_meaning(op: str, version: int) -> bool:
    """Report whether an operator without a row is still supported if all its inputs are constants: shapes, and
    functions."""
    if op in ("ConstantOfShape", "Range", "Shape", "Size"):
        return True
    try:
        schema = defs.get_schema(op, version, "")
    except defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def schema_function(node: Any, version: int, types: Sequence[str | None]) -> OnnxFunction | None:
    """Return the body that ONNX's schema defines for an operator with inputs of these types."""
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None
    defaults = tuple(a.default_value for a in schema.attributes.values() if a.default_value.name)
    if schema.has_function:
        proto = onnx.FunctionProto()
        proto.CopyFrom(schema.function_body)
        return OnnxFunction(proto, defaults)
    if schema.has_context_dependent_function:
        given = []
        for t in types:
            kind = onnx.TypeProto()
            if t is not None:
                kind.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(t))
            given.append(kind.SerializeToString())
        try:
            raw = schema.get_context_dependent_function(node.SerializeToString(), given)
        except Exception:  # it has none for these
            return None
        if raw:
            proto = onnx.FunctionProto()
            proto.ParseFromString(raw)
            return OnnxFunction(proto, defaults)
    return None

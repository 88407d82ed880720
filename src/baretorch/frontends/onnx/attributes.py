"""Converts the attributes of ONNX's nodes to Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import AttributeProto, NodeProto

from baretorch.errors import CompileError
from baretorch.frontends.onnx.tensors import array_of, type_name


def with_attributes(node: Any, given: Mapping[str, Any]) -> Any:
    """Return a node of a function with the attributes that it takes from the function's call."""
    if not any(a.ref_attr_name for a in node.attribute):
        return node
    own = NodeProto()
    own.CopyFrom(node)
    del own.attribute[:]
    for a in node.attribute:
        source = given.get(a.ref_attr_name) if a.ref_attr_name else a
        if source is not None:
            own.attribute.add().CopyFrom(source)
            own.attribute[-1].name = a.name
    return own


def attributes_of(node: Any) -> dict[str, Any]:
    return {a.name: attribute_value(a) for a in node.attribute}


def attribute_value(a: Any) -> Any:
    """Return an AttributeProto's value: plain Python, NumPy, or a graph unchanged."""
    kinds = AttributeProto
    if a.type in (kinds.INT, kinds.FLOAT):
        return a.i if a.type == kinds.INT else a.f
    if a.type in (kinds.INTS, kinds.FLOATS):
        return tuple(a.ints if a.type == kinds.INTS else a.floats)
    if a.type == kinds.STRING:
        return _text(a.s)
    if a.type == kinds.STRINGS:
        return tuple(map(_text, a.strings))
    if a.type == kinds.TENSOR:
        return array_of(a.t)
    if a.type == kinds.GRAPH:
        return a.g
    raise CompileError(f"the attribute {a.name!r} is of a kind that is not supported", have=type_name(a.type))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")

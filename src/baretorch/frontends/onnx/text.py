"""Prints an ONNX model as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import AttributeProto

from baretorch.escape import graph_name, line
from baretorch.frontends.onnx.tensors import type_name

SHOWN = 60  # letters of an attribute


def to_text(model: Any) -> str:
    """Print one line per node."""
    return "\n".join(_lines(model.graph, ""))


def _lines(graph: Any, indent: str) -> Iterator[str]:
    for i in graph.input:
        yield f"{indent}input  {_value(i)}"
    for t in graph.initializer:
        yield f"{indent}const  {graph_name(t.name)}: {type_name(t.data_type)}{list(t.dims)}"
    for node in graph.node:
        results = ", ".join(graph_name(o) if o else "_" for o in node.output)
        words = [graph_name(i) if i else "_" for i in node.input]
        inside = [a for a in node.attribute if a.type == AttributeProto.GRAPH]
        words += [f"{line(a.name)}={_attribute(a)}" for a in node.attribute if a not in inside]
        domain = f"{line(node.domain)}::" if node.domain else ""
        name = f"  # {line(node.name)}" if node.name else ""
        yield f"{indent}{results} = {domain}{line(node.op_type)}({', '.join(words)}){name}"
        for a in inside:
            yield f"{indent}  {line(a.name)}:"
            yield from _lines(a.g, f"{indent}    ")
    for o in graph.output:
        yield f"{indent}output {_value(o)}"


def _value(value: Any) -> str:
    kind = value.type.tensor_type
    dims = [str(d.dim_value) if d.HasField("dim_value") else line(d.dim_param) or "?" for d in kind.shape.dim]
    shape = f"[{', '.join(dims)}]" if kind.HasField("shape") else ""
    return f"{graph_name(value.name)}: {type_name(kind.elem_type)}{shape}"


def _attribute(a: Any) -> str:
    if a.type == AttributeProto.TENSOR:
        return f"{type_name(a.t.data_type)}{list(a.t.dims)}"
    value = {
        AttributeProto.INT: a.i,
        AttributeProto.FLOAT: a.f,
        AttributeProto.STRING: a.s.decode("utf-8", "replace"),
        AttributeProto.INTS: list(a.ints),
        AttributeProto.FLOATS: list(a.floats),
    }.get(a.type, "…")
    text = line(str(value))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"

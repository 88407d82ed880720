"""Converts ONNX's protobuf messages: element types, constants and attributes to Python's and NumPy's, a model to text.

A constant's declared size is compared with the bytes in the file first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TensorProto, numpy_helper

from baretorch.errors import CompileError
from baretorch.escape import graph_name, line
from baretorch.frontends.lowering import DTYPES
from baretorch.ir.graph import Array, DType

BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}  # of types that share bytes


def type_name(number: int) -> str:
    """Return ONNX's name of an element type, in lower case."""
    known = TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(number)).lower() if number in known else f"type {number}"


def label_of(number: int) -> str:
    """Return an element type's name as Baretorch writes it."""
    name = type_name(number)
    return "float32" if name == "float" else name


def graph_type(number: int) -> DType | None:
    """Return Baretorch's type for an element type, if there is one."""
    return DType.of(label_of(number))


def dtype_of(number: int, what: str) -> DType:
    """Return Baretorch's type. Raises CompileError if there is none."""
    dtype = graph_type(number)
    if dtype is None:
        label = label_of(number)
        raise CompileError(
            f"{what}: the type {label} is not supported",
            need=DTYPES,
            try_="convert the model to float32" if label in ("float16", "bfloat16", "double") else None,
        )
    return dtype


def array_of(tensor: Any) -> Array:
    """Return the data of a TensorProto, whose external data has been read."""
    what = f"the constant {tensor.name!r}" if tensor.name else "a constant"
    count = prod(tensor.dims)
    if any(d < 0 for d in tensor.dims):
        raise CompileError(f"{what} has the shape {list(tensor.dims)}")
    if tensor.data_type == TensorProto.STRING:
        raise CompileError(f"{what} holds strings, which are not supported")
    if tensor.data_location == TensorProto.EXTERNAL:
        raise CompileError(f"{what} is stored in another file; only constants of the model itself may be")
    bits = BITS.get(type_name(tensor.data_type).upper(), 8)
    brought = 8 * max(len(tensor.raw_data), tensor.ByteSize()) // bits  # upper bound of the elements
    if count > brought:
        raise CompileError(f"{what} has {count:,} elements, but the file brings {tensor.ByteSize():,} bytes for them")
    try:
        data = numpy_helper.to_array(tensor)
    except Exception as error:  # onnx raises many kinds
        raise CompileError(f"{what} is damaged", have=str(error)[:200]) from error
    return np.asarray(data)


def tensor_of(data: Array, name: str = "") -> Any:
    """Make a TensorProto."""
    return numpy_helper.from_array(np.asarray(data), name)


def element_type(data: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype))


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


SHOWN = 60  # letters of an attribute


def model_to_text(model: Any) -> str:
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

"""Asks the onnx package how ONNX defines an operator: its result for constants, the sizes of its results, and its
expansion into other operators.

Nodes whose inputs are all constants are computed by onnx.reference, one at a time. Most are shape arithmetic. Sizes are
checked before anything is allocated.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, shape_inference
from onnx.reference import ReferenceEvaluator

from baretorch.frontends.onnx.proto import element_type, tensor_of
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import Array

# What is random, what has no other meaning than its row's, and what a pass does better.
NEVER = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"),
        *("Dropout", "ImageDecoder", "DequantizeLinear"),
    }
)
REPEATS = frozenset({"Expand", "Tile"})  # large results are not computed, because their readers broadcast
FEW = 1024  # elements
MANY = 1 << 20  # most elements that are computed to find out whether ONNX can
# Operators that take onnx.reference far more memory or time than their result: windows, and loops in Python.
SLOW = frozenset(
    {
        *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "AveragePool", "MaxPool", "LpPool"),
        *("Resize", "Upsample", "GridSample", "Einsum", "RNN", "GRU", "LSTM", "Attention", "RoiAlign"),
    }
)
WORK = 1 << 22  # for those, most results times elements of an operand
GROWS = frozenset(
    {"Resize", "Upsample", "OneHot", "Col2Im", "AffineGrid"}
)  # the size of their result depends on values
BOUNDED = frozenset({"NonZero", "Unique", "Compress"})  # their result is at most their input times its rank


def fold(node: Any, inputs: Sequence[Array | None], opset: int) -> tuple[Array, ...] | None:
    """Return the result of a node of ONNX's own domain for constants; None if it cannot be computed here."""
    if node.op_type in NEVER or any(a.g.node or a.graphs for a in node.attribute):
        return None
    if node.op_type == "Identity" and inputs[0] is not None:
        return (inputs[0],)
    sizes = _sizes(node, inputs, [x is not None and x.size <= FEW for x in inputs], opset)
    given = sum(x.nbytes for x in inputs if x is not None)
    if sizes is None:
        if node.op_type not in BOUNDED or given > FEW * 8:
            return None
    else:
        _need_room(node, sizes)
        if node.op_type in REPEATS and max(sizes, default=0) > FEW:
            return None
        if node.op_type in SLOW and sum(sizes) * max((x.size for x in inputs if x is not None), default=0) > WORK:
            return None
    return _compute(node, inputs, opset)  # None leaves it to the row


def computes(node: Any, inputs: Sequence[Array | None], opset: int) -> bool:
    """Report whether ONNX itself computes a result for such inputs. If so, the error is in the row, not in the file."""
    sizes = _sizes(node, inputs, [x is not None and x.size <= FEW for x in inputs], opset)
    if sizes is None or sum(sizes) > MANY or any(a.g.node or a.graphs for a in node.attribute):
        return False
    return _compute(node, inputs, opset) is not None


def _compute(node: Any, inputs: Sequence[Array | None], opset: int) -> tuple[Array, ...] | None:
    """Return onnx.reference's result for the inputs; None if it fails."""
    names = [name for name in node.input if name]
    feeds = dict(zip(names, (x for x in inputs if x is not None), strict=True))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = ReferenceEvaluator(_model(node, inputs, opset, ())).run(None, feeds)
    except Exception:
        return None
    return tuple(map(np.asarray, made)) if all(map(_is_numbers, made)) else None


def _is_numbers(y: Any) -> bool:
    """Report whether a value is neither a sequence nor text, whose size is not counted."""
    return isinstance(y, (np.ndarray, np.generic)) and y.dtype.kind not in "OSUT"


def _model(node: Any, inputs: Sequence[Array | None], opset: int, constants: Sequence[int]) -> Any:
    """Return a model with the node alone, with the inputs at these places as constants."""
    given = {}
    for name, x in zip(node.input, inputs, strict=True):
        if x is not None:
            given[name] = x
    values = [helper.make_tensor_value_info(n, element_type(x), x.shape) for n, x in given.items()]
    known = {node.input[i] for i in constants}
    graph = helper.make_graph(
        [node],
        "one",
        [v for v in values if v.name not in known],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        [tensor_of(given[name], name) for name in known],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check_growth(node: Any, inputs: Sequence[Array | None], known: Sequence[bool], opset: int) -> None:
    """Raise CompileError if a node would compute an unreasonably large result from inputs of these shapes, some of them
    known."""
    _need_room(node, _sizes(node, inputs, known, opset) or [])


def _need_room(node: Any, sizes: Sequence[int]) -> None:
    if 4 * max(sizes, default=0) > ROOM:
        raise too_large(f"{node.op_type} makes {4 * max(sizes):,} bytes")


def _sizes(node: Any, inputs: Sequence[Array | None], known: Sequence[bool], opset: int) -> list[int] | None:
    """Return the number of elements of each output for these constant inputs; None if it is unknown."""
    constants = [i for i, is_known in enumerate(known) if is_known]
    try:
        inferred = shape_inference.infer_shapes(_model(node, inputs, opset, constants), data_prop=True)
    except Exception:
        return None
    sizes = []
    for value in inferred.graph.output:
        kind = value.type.tensor_type
        if not kind.HasField("shape") or any(not d.HasField("dim_value") for d in kind.shape.dim):
            return None
        sizes.append(prod(d.dim_value for d in kind.shape.dim))
    return sizes


@dataclass(frozen=True)
class OnnxFunction:
    """A FunctionProto, with the default attributes of its calls."""

    proto: Any
    defaults: tuple[Any, ...] = ()


def has_meaning(op: str, version: int) -> bool:
    """Report whether an operator without a row can be computed if all its inputs are constants. That is the case for
    operators that return shapes, and for those that ONNX defines by other operators."""
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
        except Exception:  # it has no body for these types
            return None
        if raw:
            proto = onnx.FunctionProto()
            proto.ParseFromString(raw)
            return OnnxFunction(proto, defaults)
    return None

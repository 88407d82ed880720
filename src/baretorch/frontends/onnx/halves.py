"""Models with float16 and bfloat16: as float32 models, which Baretorch reads, and as they are, for the runtimes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from baretorch.frontends.onnx.interface import Interface
from baretorch.frontends.onnx.proto import array_of, tensor_of
from baretorch.frontends.onnx.runtime import RunFeeds, answers, runtimes
from baretorch.ir.graph import HALVES, Array, DType

NUMBERS = {TensorProto.FLOAT16: DType.FLOAT16, TensorProto.BFLOAT16: DType.BFLOAT16}
CHOOSE = ("to", "dtype", "output_dtype")  # attributes that are an element type


def widen_halves(model: Any) -> tuple[Any, DType, dict[str, DType]]:
    """Return a model in float32, the coarsest float type in which the file computes, and the types of inputs and
    outputs that are halves. A model without halves is returned itself."""
    if not any(type_of(part) for part in _parts(model)):
        return model, DType.FLOAT32, {}
    computed = {type_of(part) for part in _parts(model) if not hasattr(part, "data_type")}
    nodes = [node for graph in _graphs(model) for node in graph.node]
    read = {name for node in nodes if node.op_type not in ("Cast", "Constant") for name in node.input}
    stored = [t for graph in _graphs(model) for t in getattr(graph, "initializer", ()) if t.name in read]
    stored += [a.t for n in nodes if n.op_type == "Constant" and read.intersection(n.output) for a in n.attribute]
    computed |= {type_of(t) for t in stored}  # a constant that is only cast is a stored weight
    coarsest = next((half for half in (DType.BFLOAT16, DType.FLOAT16) if half in computed), DType.FLOAT32)
    declared = {v.name: type_of(v.type.tensor_type) for v in (*model.graph.input, *model.graph.output)}
    wide = type(model)()
    wide.CopyFrom(model)
    for part in _parts(wide):
        if type_of(part) is None:
            continue
        if hasattr(part, "data_type"):
            part.CopyFrom(tensor_of(array_of(part).astype(np.float32), part.name))
        elif hasattr(part, "elem_type"):
            part.elem_type = TensorProto.FLOAT
        else:
            part.i = TensorProto.FLOAT
    return wide, coarsest, {name: half for name, half in declared.items() if half is not None}


def type_of(part: Any) -> DType | None:
    """Return the half that a tensor, a type or an attribute has; None for all other types."""
    number = part.data_type if hasattr(part, "data_type") else getattr(part, "elem_type", None)
    return NUMBERS.get(part.i if number is None else number)


def _graphs(model: Any) -> Iterator[Any]:
    """Yield all graphs and functions of a model."""
    left = [model.graph, *model.functions]
    while left:
        graph = left.pop()
        yield graph
        attributes = [a for node in graph.node for a in node.attribute]
        left += [g for a in attributes for g in (*([a.g] if a.HasField("g") else ()), *a.graphs)]


def _parts(model: Any) -> Iterator[Any]:
    """Yield the tensors, the types of values, and the attributes that choose a type, of a model."""
    for graph in _graphs(model):
        values = list(graph.value_info)
        if hasattr(graph, "initializer"):  # a function has none
            yield from graph.initializer
            values += [*graph.input, *graph.output]
        yield from (v.type.tensor_type for v in values if v.type.HasField("tensor_type"))
        for a in (a for node in graph.node for a in node.attribute):
            yield from (*([a.t] if a.HasField("t") else ()), *a.tensors)
            if a.name in CHOOSE:
                yield a


def run_in_halves(run: RunFeeds, model: Any) -> RunFeeds:
    """Return a run of the model itself: from and to float32."""
    types = {
        i.name: helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        for i in model.graph.input
        if type_of(i.type.tensor_type) is not None
    }

    def run_wide(feeds: dict[str, Array]) -> dict[str, Array]:
        with np.errstate(over="ignore"):
            made = run({name: x.astype(types[name]) if name in types else x for name, x in feeds.items()})
        return {name: y.astype(np.float32) if y.dtype.name in HALVES else y for name, y in made.items()}

    return run_wide


def answers_in_halves(
    model: Any, interface: Interface, inputs: Sequence[Array]
) -> tuple[tuple[Array, ...], RunFeeds, str] | None:
    """Return the results of the model itself, its run, and the runtime's name; None if no runtime computes with its
    types."""
    for run, library in runtimes(model):
        own = run_in_halves(run, model)
        try:
            return answers(own, interface, inputs, 2 if interface.state else 1), own, library
        except Exception:  # a crash, or an operator without a kernel for the type
            continue
    return None

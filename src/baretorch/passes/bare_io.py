"""`--io int8`: take and give int8 at the model's border, without quantize and dequantize."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir import DType, Graph, Node, Quant, Tensor
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.rewrite import rebuilt


def bare_io(graph: Graph) -> Graph:
    uses = graph.uses()
    producer = graph.producer()
    new: dict[str, Tensor] = {}
    rename: dict[str, str] = {}
    nodes: list[Node] = list(graph.nodes)
    for name in graph.inputs:
        readers = uses.get(name, [])
        if graph[name].dtype is not DType.FLOAT32 or not readers:
            continue
        if not all(r.op == readers[0].op and isinstance(r.op, Quantize) for r in readers):
            floats = [r for r in readers if not isinstance(r.op, Quantize)]
            raise _float_border(graph, f"input {name}", (floats or readers)[0])
        op = readers[0].op
        assert isinstance(op, Quantize)
        new[name] = replace(graph[name], dtype=DType.INT8, quant=Quant((op.scale,), (op.zero,)))
        for r in readers:
            nodes.remove(r)
            rename[r.outputs[0]] = name
    outputs = []
    for name in graph.outputs:
        made = producer.get(name)
        if graph[name].dtype is not DType.FLOAT32:
            outputs.append(name)
        elif made is not None and isinstance(made.op, Dequantize):
            stored = made.inputs[0]
            quant = Quant((made.op.scale,), (made.op.zero,))
            new[stored] = replace(new.get(stored, graph[stored]), quant=quant)
            outputs.append(stored)
        else:
            raise _float_border(graph, f"output {name}", made)
    return rebuilt(replace(graph, outputs=tuple(outputs)), nodes, new.values(), rename)


def _float_border(graph: Graph, what: str, layer: Node | None) -> CompileError:
    if not any(t.dtype is DType.INT8 for t in graph.tensors.values()):
        return CompileError(
            f"--io int8: {what} is not int8, as nothing in this model is",
            try_=["`--int8` quantizes the model", "leave --io at float"],
        )
    made = graph[layer.outputs[0]] if layer else None
    return CompileError(
        f"--io int8: {what} is not int8, as its layer is computed in float",
        at=str(made.origin) or None if made else None,
        have=f"{layer.op.name} gives {made}" if layer else None,
        try_="leave --io at float, or quantize the first and last layer",
    )

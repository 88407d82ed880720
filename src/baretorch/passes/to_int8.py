"""Make the notes of `note_scales` true: operators between noted tensors become int8 operators.

Where an operator has no int8 form, or a tensor around it has no scale, it stays float and quantize or dequantize stand
at the border; `float_layers` names what stayed.
"""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir import DType, Graph
from baretorch.ops.layout import Pad
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.int8_rules import MOVES, RULES
from baretorch.passes.int8_walk import Walk
from baretorch.passes.rewrite import rebuilt

QUIET = (Quantize, Dequantize, Pad, *MOVES)  # float is no loss here


def to_int8(graph: Graph) -> Graph:
    if all(t.quant is None for t in graph.tensors.values()):
        return graph
    walk = Walk(graph)
    for node in graph.nodes:
        rule = next((rule for kind, rule in RULES if isinstance(node.op, kind)), None)
        if rule is None or not rule(walk, node):
            walk.nodes.append(replace(node, inputs=tuple(map(walk.real, node.inputs))))
            walk.floats.update(node.outputs)
    outputs = tuple(walk.real(name) for name in graph.outputs)
    state = tuple(replace(s, next=walk.real(s.next)) for s in graph.state)
    return rebuilt(replace(graph, outputs=outputs, state=state), walk.nodes, walk.new.values())


def float_layers(graph: Graph) -> list[str]:
    """Of a graph with int8 operators: the operators that compute in float, by the user's name for them."""
    if not any(t.dtype is DType.INT8 for t in graph.tensors.values()):
        return []
    return [
        f"{node.op.name} {graph[node.outputs[0]].origin}".strip()
        for node in graph.nodes
        if graph[node.outputs[0]].dtype is DType.FLOAT32 and not isinstance(node.op, QUIET)
    ]

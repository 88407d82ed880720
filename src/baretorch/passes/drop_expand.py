"""Leave out expansions whose readers broadcast anyway: a repeated element need not exist twice."""

from __future__ import annotations

from baretorch.ir.graph import Graph, Node
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.layout import Expand
from baretorch.passes.rewrite import rebuilt


def drop_expand(graph: Graph) -> Graph:
    source = {node.outputs[0]: node.inputs[0] for node in graph.nodes if isinstance(node.op, Expand)}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = node.inputs
        for i, name in enumerate(inputs) if isinstance(node.op, Elementwise) else ():
            fewer = (*inputs[:i], source.get(name, name), *inputs[i + 1 :])
            if node.op.infer(graph.of(fewer))[0].shape == graph[node.outputs[0]].shape:
                inputs = fewer
        nodes.append(Node(node.op, inputs, node.outputs))
    return rebuilt(graph, nodes)

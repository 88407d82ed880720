"""Fuse ReLU, ReLU6 and clamp into the node that makes their input, if its operator has limits."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Op, Tensor
from baretorch.ops.elementwise import Clamp
from baretorch.passes.rewrite import rebuilt


def fuse_clamp(graph: Graph) -> Graph:
    uses = graph.uses()
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    scaled: list[Tensor] = []
    maker: dict[str, int] = {}

    def limited(node: Node) -> Op | None:
        """The operator that makes the node's input, with its limits."""
        if not isinstance(node.op, Clamp) or (index := maker.get(node.inputs[0])) is None:
            return None
        (x,), (out,) = node.inputs, node.outputs
        alone = len(uses[x]) == 1 and x not in graph.kept and _same_scale(graph[x], graph[out])
        return nodes[index].op.clamp(node.op.lo, node.op.hi) if alone else None

    for node in graph.nodes:
        op = limited(node)
        if op is None:
            maker[node.outputs[0]] = len(nodes)
            nodes.append(node)
            continue
        (x,), (out,) = node.inputs, node.outputs
        nodes[maker[x]] = replace(nodes[maker[x]], op=op)
        rename[out] = x  # the result keeps the layer's name and origin
        scaled.append(replace(graph[x], quant=graph[out].quant, value=graph[out].holds))
        maker[out] = maker[x]
    return rebuilt(graph, nodes, scaled, rename)


def _same_scale(before: Tensor, after: Tensor) -> bool:
    """Nothing is rounded to another int8 scale in between."""
    return before.quant in (None, after.quant)

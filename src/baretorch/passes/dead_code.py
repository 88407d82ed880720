"""Leave out nodes and tensors that no output depends on."""

from __future__ import annotations

from baretorch.ir.graph import Graph
from baretorch.passes.rewrite import rebuilt


def dead_code(graph: Graph) -> Graph:
    return rebuilt(graph, graph.nodes)

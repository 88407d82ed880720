"""Rebuild a graph after a pass: rename tensors, and remove what no output depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Tensor


def rebuild(
    graph: Graph, nodes: Iterable[Node], new: Iterable[Tensor] = (), rename: Mapping[str, str] | None = None
) -> Graph:
    """Return the graph with these nodes instead, new tensors added, names replaced wherever they are read, and
    everything unused removed."""
    rename = rename or {}

    def final(name: str) -> str:
        while name in rename:
            name = rename[name]
        return name

    renamed = [replace(n, inputs=tuple(map(final, n.inputs))) for n in nodes]
    outputs = tuple(map(final, graph.outputs))
    tensors = {**graph.tensors, **{t.name: t for t in new}}
    kept: list[Node] = []
    state = tuple(replace(s, next=final(s.next)) for s in graph.state)
    live = set(outputs) | {name for s in state for name in (s.name, s.next)}
    for node in reversed(renamed):
        if live.intersection(node.outputs):
            kept.append(node)
            live.update(node.inputs)
            live.update(node.outputs)
    live.update(graph.inputs)
    return replace(
        graph,
        nodes=tuple(reversed(kept)),
        outputs=outputs,
        state=state,
        tensors={n: t for n, t in tensors.items() if n in live},
    )


def dead_code(graph: Graph) -> Graph:
    """Remove nodes and tensors that no output depends on."""
    return rebuild(graph, graph.nodes)

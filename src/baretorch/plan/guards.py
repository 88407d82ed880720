"""Conditional execution: what only one side of a `choose` needs runs only if that side is chosen.

A Graph has no branches: both sides of a choose are values like any other. Here it is found out, backwards from the
outputs, on which conditions every node is needed; from the outermost condition to the innermost. The plan stays a list
of steps in order, each of which may have such guards, so lifetimes and offsets know nothing of it: what never runs
together just does not use its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from baretorch.ir.graph import Graph, Node
from baretorch.ops.move import Choose

Needs: TypeAlias = tuple[tuple[str, bool], ...]  # conditions and what they must be


@dataclass(frozen=True)
class Guarded:
    """A graph in which every condition is made before what depends on it, and the conditions of each tensor that is
    computed: it is there only if they hold."""

    graph: Graph
    needs: Mapping[str, Needs]


def find_guards(graph: Graph) -> Guarded:
    """Find the conditions of each tensor, and move them before what depends on them."""
    if not any(isinstance(node.op, Choose) for node in graph.nodes):
        return Guarded(graph, {})
    needs = _needs(graph)
    producer = graph.producer()
    nodes: dict[int, Node] = {}
    for pending in ([node] for node in graph.nodes):
        while pending:  # not by recursion: graphs are deep
            node = pending[-1]
            before = (*(condition for condition, _ in needs[node.outputs[0]]), *node.inputs)
            missing = [producer[name] for name in before if name in producer and id(producer[name]) not in nodes]
            if missing:
                pending.append(missing[0])
            else:
                nodes[id(pending.pop())] = node
    return Guarded(replace(graph, nodes=tuple(nodes.values())), needs)


def side(needs: Mapping[str, Needs], node: Node, holds: bool) -> Needs:
    """When a side of a choose is taken."""
    return (*needs[node.outputs[0]], (node.inputs[0], holds))


def shared_start(a: Sequence[object], b: Sequence[object]) -> int:
    """How many items two sequences begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _needs(graph: Graph) -> dict[str, Needs]:
    """The conditions that all readers of a tensor have in common."""
    wanted: dict[str, list[Needs]] = {name: [()] for name in (*graph.outputs, *(s.next for s in graph.state))}
    needs: dict[str, Needs] = {}
    for node in reversed(graph.nodes):
        all_wanted = [w for name in node.outputs for w in wanted.get(name, ())]
        common = reduce(lambda a, b: a[: shared_start(a, b)], all_wanted or [()])
        needs |= dict.fromkeys(node.outputs, common)
        chooses = isinstance(node.op, Choose)
        for i, name in enumerate(node.inputs):
            taken = side(needs, node, i == 1) if chooses and i else common
            wanted.setdefault(name, []).append(taken)
    return needs

"""Conditional execution: steps that only one side of a `choose` needs run only if that side is chosen.

A Graph has no branches: both sides of a choose are ordinary values. This module computes, backwards from the outputs,
the conditions on which every node is needed, from the outermost to the innermost. The plan stays a list of steps in
order, each of which may have such guards, so lifetimes and offsets need not know them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from baretorch.ir.graph import Graph, Node
from baretorch.ops.move import Choose

Conditions: TypeAlias = tuple[tuple[str, bool], ...]  # conditions and what they must be


@dataclass(frozen=True)
class Guarded:
    """A graph in which every condition is computed before what depends on it, and the conditions of each computed
    tensor, which exists only if they hold."""

    graph: Graph
    needs: Mapping[str, Conditions]


def find_guards(graph: Graph) -> Guarded:
    """Find the conditions of each tensor, and move them before the nodes that depend on them."""
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


def side(needs: Mapping[str, Conditions], node: Node, holds: bool) -> Conditions:
    """Return the conditions under which a `choose` uses its first (`holds`) or its second side."""
    return (*needs[node.outputs[0]], (node.inputs[0], holds))


def shared_start(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _needs(graph: Graph) -> dict[str, Conditions]:
    """Return the conditions that all readers of a tensor have in common."""
    wanted: dict[str, list[Conditions]] = {name: [()] for name in (*graph.outputs, *(s.next for s in graph.state))}
    needs: dict[str, Conditions] = {}
    for node in reversed(graph.nodes):
        all_wanted = [w for name in node.outputs for w in wanted.get(name, ())]
        common = reduce(lambda a, b: a[: shared_start(a, b)], all_wanted or [()])
        needs |= dict.fromkeys(node.outputs, common)
        chooses = isinstance(node.op, Choose)
        for i, name in enumerate(node.inputs):
            taken = side(needs, node, i == 1) if chooses and i else common
            wanted.setdefault(name, []).append(taken)
    return needs

"""Sorts the nodes of a graph so that every value is made before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any


def graphs_in(node: Any) -> Iterator[Any]:
    """Yield the graphs that a node's attributes hold."""
    for a in node.attribute:
        if a.HasField("g"):
            yield a.g
        yield from a.graphs


def nodes_in(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of the graphs inside it."""
    for node in graph.node:
        yield node
        for inside in graphs_in(node):
            yield from nodes_in(inside)


def reads(node: Any) -> set[str]:
    """Return the values of the surrounding graph that a node reads, itself or in its graphs."""
    found = set(filter(None, node.input))
    for graph in graphs_in(node):
        inside = {o.name for o in graph.output}.union(*map(reads, graph.node))
        own = {v.name for v in (*graph.input, *graph.initializer)}
        found |= inside - own.union(*(n.output for n in graph.node))
    return found


def sort_nodes(graph: Any, circular: Callable[[Sequence[Any]], Exception]) -> None:
    """Sort the nodes of a graph and of the graphs inside it. Sorted ones keep their order; of several that could be
    next, the first in the file is. If nodes depend on each other in a circle, raise `circular` of these nodes."""
    for node in graph.node:
        for inside in graphs_in(node):
            sort_nodes(inside, circular)
    nodes = list(graph.node)
    makers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            makers.setdefault(name, i)
    needs = [{makers[name] for name in reads(node) if name in makers} for node in nodes]
    if all(j < i for i, need in enumerate(needs) for j in need):
        return
    readers: list[list[int]] = [[] for _ in nodes]
    for i, need in enumerate(needs):
        for j in need:
            readers[j].append(i)
    left = list(map(len, needs))
    ready = [i for i, count in enumerate(left) if not count]
    heapify(ready)
    order = list[int]()
    while ready:
        order.append(heappop(ready))
        for i in readers[order[-1]]:
            left[i] -= 1
            if not left[i]:
                heappush(ready, i)
    if len(order) < len(nodes):
        raise circular([nodes[i] for i in _find_circle(needs, set(range(len(nodes))) - set(order))])
    copies = [type(node).FromString(node.SerializeToString()) for node in map(nodes.__getitem__, order)]
    del graph.node[:]
    graph.node.extend(copies)


def _find_circle(needs: Sequence[set[int]], among: set[int]) -> list[int]:
    """Return the indices of nodes that depend on each other in a circle, from the first in the file. Every node `among`
    these needs another of them."""
    path, at = list[int](), min(among)
    while at not in path:
        path.append(at)
        at = min(needs[at] & among)
    circle = path[path.index(at) :]
    first = circle.index(min(circle))
    return circle[first:] + circle[:first]

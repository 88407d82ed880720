"""Which memory each tensor is: its own, a part of another's, or of what it will become.

A view lies in its input's memory. The inputs of a cat along the outermost dimension are made right where the cat
wants them, so that it costs nothing. What overwrites a part of a tensor that nobody reads afterwards does it in place.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from baretorch.ir import Graph, Node
from baretorch.ops.move import Cat, Copy, Overwrite
from baretorch.passes.rewrite import fresh
from baretorch.plan.types import Place


def settled(graph: Graph) -> Graph:
    """Copy what would be overwritten when the state takes its next value: an output or another's next value that is
    itself a piece of state; and let every state's next value be a tensor of its own."""
    storage = places(graph)
    changing = {s.name for s in graph.state}
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)

    def copied(name: str) -> str:
        copy = fresh(graph, tensors, f"{name}_copy")
        tensors[copy] = replace(graph[name], name=copy, data=None)
        nodes.append(Node(Copy(), (name,), (copy,)))
        return copy

    outputs = tuple(copied(n) if storage[n].buffer in changing else n for n in graph.outputs)
    state = tuple(
        replace(s, next=copied(s.next)) if storage[s.next].buffer in changing - {s.name} else s for s in graph.state
    )
    return replace(graph, tensors=tensors, nodes=tuple(nodes), outputs=outputs, state=state)


def places(graph: Graph) -> dict[str, Place]:
    """Where each tensor lies."""
    inside: dict[str, Place] = {}  # tensor -> place in another tensor
    computed: set[str] = set()  # but for copies: those were made to lie elsewhere
    last = _last_reads(graph)

    def resolve(name: str) -> Place:
        offset = 0
        while name in inside:
            name, offset = inside[name].buffer, offset + inside[name].offset
        return Place(name, offset)

    for time, node in enumerate(graph.nodes):
        inputs = graph.of(node.inputs)
        offset = node.op.view(inputs)
        if offset is not None:
            inside[node.outputs[0]] = Place(node.inputs[0], offset)
            continue
        if not isinstance(node.op, Copy):
            computed.update(node.outputs)
        if isinstance(node.op, Cat) and prod(inputs[0].shape[: node.op.axis]) == 1:
            at = 0
            for x in inputs:
                free = x.name in computed and x.name not in inside and node.inputs.count(x.name) == 1
                if free and at % 4 == 0:
                    inside[x.name] = Place(node.outputs[0], at)
                at += x.bytes
        elif isinstance(node.op, Overwrite):
            root = resolve(node.inputs[0]).buffer
            shared = [name for name in (root, *inside) if resolve(name).buffer == root]
            unread = all(last.get(name, -1) <= time for name in shared)
            if unread and graph[root].data is None and not set(shared) & set(node.inputs[1:]):
                inside[node.outputs[0]] = Place(node.inputs[0])

    return {name: resolve(name) for name in graph.tensors}


def _last_reads(graph: Graph) -> dict[str, int]:
    """The last node that reads each tensor; what is read after the run counts as read by the node after the last."""
    last = {name: time for time, node in enumerate(graph.nodes) for name in node.inputs}
    return last | dict.fromkeys((*graph.outputs, *(s.next for s in graph.state)), len(graph.nodes))

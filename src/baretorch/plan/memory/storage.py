"""Choose the memory of each tensor: its own, or a part of another tensor's.

A view is in its input's memory. The inputs of a cat along the outermost dimension are computed in the cat's memory, so
that it costs nothing, except if that is a state that shifts to make room for them. An operator that overwrites a part
of a tensor that is not read afterwards works in place, and so does one that adds to sums. Both sides of a choose are
computed in its memory if nothing else reads them, because only one of them runs. A tensor that an NPU uses has its own
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from baretorch.ir.graph import Graph
from baretorch.ops.move import Cat, Choose
from baretorch.plan.guards import Conditions, side
from baretorch.plan.schedule import View

NOTHING: Mapping[str, Conditions] = {}


def assign_storage(graph: Graph, needs: Mapping[str, Conditions] = NOTHING) -> dict[str, View]:
    """Return the memory of each tensor; `needs` are the conditions on which it is computed."""
    inside: dict[str, View] = {}  # tensor -> its part of another tensor's memory
    computed: set[str] = set()  # results that may be placed elsewhere; copies may not
    last = _last_reads(graph)
    following = {s.next: s.name for s in graph.state}
    apart = _npu_tensors(graph)

    def resolve(name: str) -> View:
        offset = 0
        while name in inside:
            name, offset = inside[name].buffer, offset + inside[name].offset
        return View(name, offset)

    for time, node in enumerate(graph.nodes):
        inputs = graph.of(node.inputs)
        offset = node.op.view(inputs)
        if offset is not None:
            inside[node.outputs[0]] = View(node.inputs[0], offset)
            continue
        if node.op.destination(inputs, graph[node.outputs[0]]) is None and apart.isdisjoint(node.outputs):
            computed.update(node.outputs)
        if isinstance(node.op, Cat) and prod(inputs[0].shape[: node.op.axis]) == 1:
            at = 0
            shifts = following.get(node.outputs[0]) in {resolve(x.name).buffer for x in inputs}
            for x in inputs:
                free = not shifts and x.name in computed and x.name not in inside and node.inputs.count(x.name) == 1
                if free and at % 4 == 0:
                    inside[x.name] = View(node.outputs[0], at)
                at += x.bytes
        elif isinstance(node.op, Choose) and needs:
            for name, holds in zip(node.inputs[1:], (True, False), strict=True):
                taken = side(needs, node, holds)
                if name in computed and name not in inside and needs[name][: len(taken)] == taken:
                    inside[name] = View(node.outputs[0])
        elif (changed := node.op.overwrites) is not None:
            others = node.inputs[:changed] + node.inputs[changed + 1 :]
            root = resolve(node.inputs[changed]).buffer
            shared = [name for name in (root, *inside) if resolve(name).buffer == root]
            unread = all(last.get(name, -1) <= time for name in shared)
            if unread and node.outputs[0] not in apart and graph[root].data is None and not set(shared) & set(others):
                inside[node.outputs[0]] = View(node.inputs[changed])

    return {name: resolve(name) for name in graph.tensors}


def _npu_tensors(graph: Graph) -> set[str]:
    """Return the tensors that an NPU uses, and those that these are views of: they begin where the NPU can access them,
    and not somewhere in another tensor."""
    producer = graph.producer()
    found: set[str] = set()
    for node in graph.nodes:
        for name in (node.inputs[0], *node.outputs) if node.op.alignment else ():
            while name in producer and producer[name].op.view(graph.of(producer[name].inputs)) is not None:
                name = producer[name].inputs[0]
            found.add(name)
    return found


def _last_reads(graph: Graph) -> dict[str, int]:
    """Return the last node that reads each tensor. Tensors that are read after the run count as read by a node after
    the last."""
    last = {name: time for time, node in enumerate(graph.nodes) for name in node.inputs}
    return last | dict.fromkeys(graph.kept, len(graph.nodes))

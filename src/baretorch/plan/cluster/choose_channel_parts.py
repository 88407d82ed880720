"""Choose the layers of a cluster whose input channels are taken in parts: those whose weights and windows, though cut
along rows and output channels, do not fit the scratchpad beside what they read and make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from baretorch.ir.graph import Graph, Node, Op, Shape
from baretorch.ops.helpers.kernel import Call
from baretorch.plan.cluster.channel_parts import WORD, in_parts, is_pointwise, sums_shape, takes_parts
from baretorch.plan.cluster.choose_tiles import LIMITS
from baretorch.plan.schedule import Step
from baretorch.plan.types import Plan

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIED = 2  # of these, from the first on of which all seems to fit; and the first of which some does, with more tiles
TOGETHER = 4  # output channels whose weights are never apart
SUM = 4  # bytes


@dataclass(frozen=True)
class _Layer:
    """A layer that does not fit, and how many parts to try."""

    name: str
    like: tuple[Op, Shape, Shape]  # those that are alike are cut alike
    counts: tuple[int, ...]


def with_sums(plain: Plan, plan_of: Callable[[Graph], Plan], room: int, over: Callable[[Plan], int]) -> Plan:
    """The plan that takes fewest modelled cycles of those that fit a scratchpad with so much room, or else the one of
    which the fewest bytes are `over`: with layers in parts, or as it is."""
    layers = list(_layers(plain, room))
    kinds = dict.fromkeys(layer.like for layer in layers)
    tries = {like: next(layer.counts for layer in layers if layer.like == like) for like in kinds}
    tries = {like: counts for like, counts in tries.items() if counts}

    def cost(plan: Plan) -> tuple[int, bool, int]:
        """Without tiles, cores read weights where these lie."""
        return over(plan), plan.tiles is None, plan.tiles.cycles if plan.tiles else 0

    def made(chosen: dict[tuple[Op, Shape, Shape], int]) -> Plan:
        counts = {layer.name: chosen[layer.like] for layer in layers if layer.like in chosen}
        return plan_of(in_parts(plain.graph, counts)) if any(n > 1 for n in counts.values()) else plain

    best, chosen = plain, {like: counts[0] for like, counts in tries.items()}
    if chosen and cost(first := made(chosen)) < cost(best):
        best = first
    else:
        chosen = dict.fromkeys(tries, 1)
    for like, counts in tries.items():
        for count in (1, *counts):
            if count != chosen[like] and cost(other := made({**chosen, like: count})) < cost(best):
                best, chosen = other, {**chosen, like: count}
    return best


def _layers(plan: Plan, room: int) -> Iterator[_Layer]:
    graph, cores = plan.graph, len(plan.schedule.cores)
    steps = {step.call.y.name: step for step in plan.steps}
    for node in graph.nodes:
        step = steps.get(node.outputs[0])
        if step is None or step.kernel.unit or step.guards or not takes_parts(graph, node):
            continue
        x, weight = graph.of(node.inputs[:2])
        sums = SUM * prod(sums_shape(graph, node))
        beside, (scratch, weights) = x.bytes + graph[node.outputs[0]].bytes, _own(graph, node, step, cores)
        if beside + scratch + weights <= room:
            continue
        scratch = 0 if is_pointwise(node.op, weight) else scratch
        some = [n for n in COUNTS if n * WORD <= weight.shape[-1]]
        whole = [n for n in some if beside + sums + (scratch + 2 * weight.bytes) // n <= room]
        one_tile = [n for n in whole if -(-weight.bytes // n) + SUM * weight.shape[0] <= LIMITS[0]]  # of each part
        least = [n for n in some if sums + (scratch + weights) // n <= room]
        counts = tuple(dict.fromkeys((*(one_tile or whole)[:TRIED], *least[:1])))
        yield _Layer(node.outputs[0], (node.op, x.shape, weight.shape), counts)


def _own(graph: Graph, node: Node, step: Step, cores: int) -> tuple[int, int]:
    """The least bytes that a layer takes for all cores beside what it reads and makes, and that are fewer with fewer
    input channels: scratch, and two buffers for weights; if there is one pixel, cores share the output channels."""
    weight, y = graph[node.inputs[1]], graph[node.outputs[0]]
    call: Call[Any] = replace(step.call, inputs=graph.of(node.inputs), outputs=(y,), op=node.op, pitch=0)
    together = TOGETHER * (cores if y.count == y.shape[-1] else 1)
    each = weight.bytes // weight.shape[0]
    return cores * step.kernel.scratch(call), 2 * min(together, weight.shape[0]) * each

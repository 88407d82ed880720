"""Tries other tiles for the layers of a model on a cluster, next to what the planner took by its model of cycles; and
other banks of the scratchpad for what they make to begin in.

One layer is changed at a time, beside what was best of those before, and the whole run counts. The arena may not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from baretorch.ops.kernel import Call
from baretorch.plan.choices import IN_CHANNELS, IN_ROWS, PLANNED, Cost, Shape, Tiling, layer_of, model_of
from baretorch.plan.types import Plan
from baretorch.report.kernels import Measured

COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)  # tiles of a layer
NEAR = 2  # of these are tried, to each side of what was planned
BANKS = (1, 2, 4, 8)  # words further on
LEAST = 0.005  # share of the products that a layer must have

Measure = Callable[[Mapping[str, Shape]], Measured]
Progress = Callable[[str, int, int], None]
Take = Callable[[Cost], tuple[int, int]]  # the less, the better


def search_tiles(
    plan: Plan, chip: str, cores: int, measure: Measure, by: Take, progress: Progress
) -> tuple[Tiling, ...]:
    """The best tiles for each kind of layer of a plan, which has none that were measured."""
    best: dict[str, Shape] = {}
    now = first = measure(best)
    slots = list(_slots(plan))
    found, model = [], model_of(plan.graph, plan.steps)
    for i, (layer, shapes) in enumerate(slots):
        tried, take = {PLANNED: now.whole}, PLANNED
        for bank in (0, *BANKS):
            for shape in [replace(take, bank=bank)] if bank else shapes:
                progress(f"try tiles of layer {i + 1} of {len(slots)}", i, len(slots))
                run = measure(best | {layer: shape})
                tried[shape] = run.whole
                if by(run.whole) < by(now.whole) and run.arena <= first.arena:
                    now, take = run, shape
        if take != PLANNED:
            best[layer] = take
        found.append(Tiling(chip, cores, model, layer, take, tried))
    return tuple(found)


def _slots(plan: Plan) -> Iterator[tuple[str, list[Shape]]]:
    """Every kind of layer with enough work, and tiles to try for it."""
    graph = plan.graph
    calls: dict[str, Call[Any]] = {}
    for node in graph.nodes:
        call: Call[Any] = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        calls.setdefault(layer_of(call), call)
    least = LEAST * sum(call.op.macs(call.inputs, call.outputs) for call in calls.values())
    phases: dict[str, set[int]] = {}
    for time, phase in enumerate(plan.phases):
        for step in phase.steps:
            phases.setdefault(step.nodes[0].outputs[0], set()).add(time)
    for layer, call in calls.items():
        count = len(phases.get(call.y.name, ()))
        if count and call.op.macs(call.inputs, call.outputs) >= max(1, least):
            shapes = list(_near(call, count, streams=plan.tiles is not None))
            if shapes:
                yield layer, shapes


def _near(call: Call[Any], count: int, streams: bool) -> Iterator[Shape]:
    """Along rows, of which an image has some, and along channels, whose weights come to the scratchpad by and by."""
    fewer, more = [n for n in COUNTS if n < count][-NEAR:], [n for n in COUNTS if n > count][:NEAR]
    shape = call.y.shape
    if len(shape) == 4:
        yield from (Shape(IN_ROWS, n) for n in (*fewer, count, *more) if n <= shape[1])
    if streams:
        yield from (Shape(IN_CHANNELS, n) for n in (*fewer, count, *more) if n <= shape[-1])

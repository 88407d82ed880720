"""List which layers other units of the chip compute, and which they do not and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baretorch.ir.graph import Graph
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.qsums import QFromSums
from baretorch.options import Units
from baretorch.plan.types import Plan
from baretorch.units import Unit, units_of

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled

NO_ROOM = "its constants, inputs and outputs do not fit into {memory}"


@dataclass(frozen=True)
class LayerOnCores:
    """A layer that a unit might have computed, and why the cores do."""

    layer: str
    op: str
    why: str


def _layers(plan: Plan, unit: Unit, graph: Graph) -> Iterator[tuple[str, LayerOnCores | None]]:
    """Each layer of a kind that the unit knows, once: with why it is kept, or None if the unit computes it. What cores
    make in parts was a layer of the graph."""
    makers = graph.producer()
    for step in {step.call.y.name: step for step in plan.steps}.values():
        y, call = step.call.y, step.call
        if isinstance(call.op, QFromSums) and (node := makers.get(y.name)) is not None:
            call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if type(call.op) not in unit.kernels:
            continue
        layer = y.origin.path or y.name
        if step.kernel.unit == unit.name:
            yield layer, None
        elif (why := unit.why_not(call)) is not None:
            yield layer, LayerOnCores(layer, call.op.name, why)
        elif y.name in plan.no_room:
            yield layer, LayerOnCores(layer, call.op.name, NO_ROOM.format(memory=unit.memory))


def used_units(compiled: Compiled) -> list[tuple[Unit, list[str], list[LayerOnCores]]]:
    """Each unit that may be used and knows a layer's kind, its layers, and those that it leaves to the cores."""
    found = []
    for unit in units_of(compiled.board.chip) if compiled.options.units is not Units.OFF else ():
        layers = list(_layers(compiled.plan, unit, compiled.graph))
        own = [layer for layer, kept in layers if kept is None]
        if layers:
            found.append((unit, own, [kept for _, kept in layers if kept is not None]))
    return found


def units_json(compiled: Compiled) -> list[dict[str, Any]]:
    return [
        {"unit": unit.name, "layers": own, "cores": [{"layer": k.layer, "op": k.op, "why": k.why} for k in kept]}
        for unit, own, kept in used_units(compiled)
    ]

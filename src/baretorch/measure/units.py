"""List which layers an NPU or another unit of the chip computes, and which it leaves to the cores and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from baretorch.ir.graph import Graph
from baretorch.npu.partition import WRONG, Left, Partition
from baretorch.npu.to_tosa import TOSA_ROWS
from baretorch.npu.use import MISSING
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.qsums import QFromSums
from baretorch.options import Units
from baretorch.plan.types import Plan
from baretorch.targets.types import Chip
from baretorch.units import Unit, units_of

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled

NO_ROOM = "its constants, inputs and outputs do not fit into {memory}"
BROUGHT = (
    "npu: the file contains commands for the NPU but not the original model: "
    "the image is compared with the emulated NPU only"
)


def used_units(compiled: Compiled) -> list[tuple[Unit, list[str], list[Left]]]:
    """List each unit that may be used and knows a layer's kind, its layers, and those that it leaves to the cores. A
    layer in bands may be in both lists."""
    found = []
    for unit in units_of(compiled.board.chip) if compiled.options.units is not Units.OFF else ():
        layers = list(_layers(compiled.plan, unit, compiled.graph))
        own = dict.fromkeys(layer for layer, kept in layers if kept is None)
        if layers:
            found.append((unit, list(own), list(dict.fromkeys(kept for _, kept in layers if kept is not None))))
    return found


def _layers(plan: Plan, unit: Unit, graph: Graph) -> Iterator[tuple[str, Left | None]]:
    """Yield each layer of a kind that the unit knows, once: with why the cores compute it, or None if the unit does.
    Steps that compute parts on cores stand for their layer of the graph."""
    makers = graph.producer()
    for step in {step.call.y.name: step for step in plan.steps}.values():
        y, call = step.call.y, step.call
        if isinstance(call.op, QFromSums) and (node := makers.get(y.name)) is not None:
            call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if type(call.op) not in unit.kernels:
            continue
        layer = y.layer
        if step.kernel.unit == unit.name:
            yield layer, None
        elif (why := unit.why_not(call)) is not None:
            yield layer, Left(layer, call.op.name, why)
        elif y.name in plan.no_room:
            yield layer, Left(layer, call.op.name, NO_ROOM.format(memory=unit.memory))


def units_json(compiled: Compiled) -> list[dict[str, Any]]:
    return [
        {"unit": unit.name, "layers": own, "cores": [asdict(left) for left in kept]}
        for unit, own, kept in used_units(compiled)
    ]


def npu_takes(chip: Chip) -> dict[str, str]:
    """Describe what the chip's NPU supports, by its name; empty if the chip has none."""
    operators = ", ".join(sorted(op.name for op in TOSA_ROWS))
    more = "as far as its shapes allow: `baretorch build` lists where each layer runs, and why"
    return {chip.npu.accelerator: f"in int8 {operators}, {more}"} if chip.npu else {}


def npu_json(compiled: Compiled) -> dict[str, Any] | None:
    """Describe the use of the NPU; null if there is none. Cycles are Vela's estimate."""
    found, npu = compiled.partition, compiled.board.chip.npu
    if found is None or npu is None:
        return None
    return {
        "accelerator": npu.accelerator,
        "system_config": npu.system_config,
        "memory_mode": npu.memory_mode,
        "vela_cycles": found.cycles,
        "regions": [
            {
                "layers": list(region.layers),
                "bytes_in": region.bytes_in,
                "bytes_out": region.bytes_out,
                "commands": region.commands,
                "weights": region.weights,
                "scratch": region.scratch,
                "vela_cycles": region.cycles,
            }
            for region in found.regions
        ],
        "cpu": [asdict(left) for left in found.left],
    }


def npu_warnings(found: Partition | None) -> tuple[str, ...]:
    reasons = Counter(left.why for left in found.left) if found is not None else Counter[str]()
    warnings = [
        f"npu: {count} {'operator stays' if count == 1 else 'operators stay'} on the CPU: {why}"
        for why, count in reasons.items()
        if why.startswith(WRONG)
    ]
    if found is not None and found.brought:
        warnings.append(BROUGHT)
    if MISSING in reasons:
        warnings.append(f"npu: {MISSING}, so the NPU does nothing: pip install 'baretorch[ethos-u]'")
    return tuple(warnings)

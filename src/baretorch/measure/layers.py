"""Combine the measurements of each layer, and find the step with the most live bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baretorch.ir.graph import Graph
from baretorch.measure.cycles import Time
from baretorch.measure.profile import Profile
from baretorch.plan.types import Buffer, Plan

if TYPE_CHECKING:
    from baretorch.quantize.accuracy import LayerAccuracy


@dataclass(frozen=True)
class LayerRow:
    """A layer, which is several steps if it runs in bands or tiles. `accuracy` is known for int8 layers whose outputs
    can be compared with float."""

    name: str
    op: str
    dtype: str
    shape: tuple[int, ...]
    kernel: str
    variant: str
    macs: int
    weights: int
    instructions: int
    time: Time
    steps: int
    accuracy: LayerAccuracy | None

    @property
    def per_mac(self) -> float | None:
        return self.instructions / self.macs if self.macs else None

    @property
    def weight(self) -> float:
        """Return the figure that layers are compared by: time if flash costs some, else instructions."""
        return self.time.all.expected if self.time.flash else self.instructions

    def to_json(self) -> dict[str, Any]:
        flash = self.time.flash
        return {
            "name": self.name,
            "op": self.op,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "kernel": self.kernel,
            "variant": self.variant,
            "macs": self.macs,
            "weights": self.weights,
            "instructions": self.instructions,
            "core_cycles": round(self.time.core.expected),
            "flash_cycles": round(flash.waits.expected) if flash else None,
            "flash_misses": {"code": flash.code_misses, "data": flash.data_misses} if flash else None,
            "flash_bytes": flash.bytes if flash else None,
            "steps": self.steps,
            "sqnr_db": self.accuracy.sqnr_db if self.accuracy else None,
        }


@dataclass(frozen=True)
class Peak:
    """The step with the most live bytes, the layer that runs there, and the live buffers, largest first."""

    step: int
    layer: str
    live: int
    buffers: tuple[Buffer, ...]

    def to_json(self) -> dict[str, Any]:
        alive = [{"name": b.name, "size": b.size} for b in self.buffers]
        return {"step": self.step, "layer": self.layer, "live": self.live, "buffers": alive}


def find_peak(plan: Plan) -> Peak | None:
    """Find the step with the most live bytes; None without an arena."""
    if not plan.steps or not plan.arena:
        return None
    step, alive = plan.peak()
    return Peak(step, plan.phases[step].main.call.y.layer, plan.live_bytes(step), tuple(alive))


def layer_of_buffer(plan: Plan, buffer: Buffer) -> str:
    """Name the layer that computes the tensor of a buffer, or needs its scratch memory."""
    tensor = plan.graph.tensors.get(buffer.name)
    if tensor is not None:
        return tensor.layer
    y = next((s.call.y for s in plan.steps if s.scratch and s.scratch.name == buffer.name), None)
    return f"scratch of {y.layer}" if y else buffer.name


def when(b: Buffer, steps: int) -> str:
    """Describe the lifetime of a buffer, as `step 3 to step 5`, `input to step 2` or `step 7 to output`."""
    first = "input" if b.first < 0 else f"step {b.first}"
    last = "output" if b.last >= steps else "input" if b.last < 0 else f"step {b.last}"
    return first if first == last else f"{first} to {last}"


def layer_rows(graph: Graph, plan: Plan, profile: Profile, accuracies: Sequence[LayerAccuracy]) -> tuple[LayerRow, ...]:
    """Return one row per layer of the profile, or if layers run in bands, one per layer and operator. Such rows have
    the shape of all of their bands."""
    outputs = ((node.op.name, graph[node.outputs[0]]) for node in graph.nodes)
    whole = {(y.layer, op): y.shape for op, y in outputs} if plan.bands or profile.traced else {}
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i, layer in enumerate(profile.layers):
        groups.setdefault((layer.name, layer.op, 0 if plan.bands else i), []).append(i)
    waiting, rows = list(accuracies), []
    for (name, op, _), members in groups.items():
        layers = [profile.layers[i] for i in members]
        steps = [step for layer in layers for step in layer.steps]
        last = steps[-1]
        constants = {o.storage for step in steps for o in step.operands if o.constant}
        # Both lists are in the order of execution.
        found = next((a for a in waiting if (a.name, a.op) == (name, op)), None)
        if found:
            waiting.remove(found)
        row = LayerRow(
            name=name,
            op=op,
            dtype=last.call.y.dtype.label,
            shape=whole.get((name, op), last.call.y.shape),
            kernel=last.kernel.symbol,
            variant=layers[-1].variant,
            macs=sum(layer.macs for layer in layers),
            weights=sum(plan.layout.constant(constant).data.nbytes for constant in constants),
            instructions=sum(layer.instructions for layer in layers),
            time=sum((layer.time for layer in layers[1:]), layers[0].time),
            steps=len(members) if profile.traced is None else profile.traced.layers[members[0]].tiles,
            accuracy=found,
        )
        rows.append(row)
    return tuple(rows)

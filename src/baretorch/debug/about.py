"""Describe a model for a debugger: debug.json lists layers and tensors, debug.hex has the reference's values.

Layers are lines of model.c, and tensors are offsets from symbols, so the description fits any program with this model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from baretorch.emit.names import Method, make_names
from baretorch.files.ownership import MARK
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import store_inputs
from baretorch.pipeline import Compiled
from baretorch.plan.schedule import Operand
from baretorch.plan.types import Buffer, InArena, Plan, WithCaller

FACTS, VALUES = "debug.json", "debug.hex"


@dataclass(frozen=True)
class LiveTensor:
    """A tensor in RAM. It is valid at the beginning of each step after `made`, up to `until`."""

    operand: Operand
    made: int  # -1: before the first step
    until: int


@dataclass(frozen=True)
class DebugInfo:
    """A compiled model as a debugger sees it, in an image or in another program."""

    compiled: Compiled
    in_image: bool = True

    @property
    def plan(self) -> Plan:
        return self.compiled.plan

    @cached_property
    def method(self) -> Method:
        names = make_names(self.compiled.graph.name, self.compiled.plans, self.compiled.c.checked)
        return names.methods[self.compiled.source.method]

    def layer(self, tensor: str) -> str:
        """Return the user's name of the layer that computes a tensor."""
        return self.plan.graph[tensor].origin.path or tensor

    def tensors(self) -> dict[str, LiveTensor]:
        operands = dict[str, Operand]()
        for o in _operands(self.plan):
            operands.setdefault(o.tensor, o)
        return {name: lifetime_of(self.plan, o) for name, o in operands.items()}

    def values(self) -> dict[str, Array]:
        """Return the reference's value of each tensor, in the first run after a reset with the example's inputs."""
        given = store_inputs(self.compiled.graph, self.compiled.source.examples)
        return interpret(self.plan.graph, given, keep=True)

    def files(self) -> dict[str, str]:
        """Return debug.json and debug.hex."""
        values, parts, at = self.values(), [], 0
        rows = []
        for name, one in self.tensors().items():
            place = self.place(one.operand)
            if place is None:
                continue
            t, raw = self.plan.graph[name], np.ascontiguousarray(values[name]).tobytes()
            quant = t.quant if t.dtype.label in ("int8", "int16") else None
            rows.append(
                {
                    "name": name,
                    "layer": self.layer(name),
                    "type": t.dtype.label,
                    "shape": list(t.shape),
                    "scale": quant.scale[0] if quant else None,
                    "zero_point": quant.zero_point[0] if quant else None,
                    "symbol": place[0],
                    "offset": place[1],
                    "made": one.made,
                    "until": one.until,
                    "value": at,
                }
            )
            parts.append(raw)
            at += len(raw)
        facts = {"about": f"{MARK}debug", **self.layers(), "tensors": rows}
        return {FACTS: json.dumps(facts, indent=1) + "\n", VALUES: b"".join(parts).hex()}

    def layers(self) -> dict[str, object]:
        steps = zip(self.plan.steps, self.compiled.c.lines, strict=True)
        return {
            "model": self.compiled.graph.name,
            "run": self.method.run,
            "source": "model.c",
            "layers": [
                {"name": self.layer(s.call.y.name), "operator": s.call.op.name, "makes": s.call.y.name, "line": line}
                for s, line in steps
            ],
        }

    def place(self, operand: Operand) -> tuple[str, int] | None:
        """Return a symbol of the image and the offset from it in bytes; None if the operand is not stored as a
        whole."""
        match self.plan.layout.place(operand):
            case InArena(bank, offset):
                return self.method.arena(bank).name, offset
            case WithCaller(buffer, offset) if self.in_image:
                return f"bt_memory_{self.method.callers[buffer].name}", offset
        return None


def lifetime_of(plan: Plan, operand: Operand) -> LiveTensor:
    """Return the steps between which the bytes of an operand are its tensor."""
    written = [(i, o) for i, s in enumerate(plan.steps) for o in s.writes if _meet(o, operand)]
    own = [i for i, o in written if o.tensor == operand.tensor]
    reads = [i for i, s in enumerate(plan.steps) for o in s.uses if o.tensor == operand.tensor]
    before = len(plan.steps) if operand in plan.outputs else min(reads, default=0)
    made = max(own or [i for i, _ in written if i < before], default=-1)
    alive = [_last(plan, b) for b in plan.layout.buffers if b.name == operand.storage] or [len(plan.steps)]
    return LiveTensor(operand, made, min([*alive, *(i for i, _ in written if i > made)]))


def _last(plan: Plan, buffer: Buffer) -> int:
    """Return the last step at whose beginning a buffer is alive; the number of steps if it is alive after the run."""
    if buffer.last >= len(plan.phases):
        return len(plan.steps)
    return sum(len(phase.steps) for phase in plan.phases[: buffer.last + 1]) - 1


def _operands(plan: Plan) -> Iterator[Operand]:
    yield from plan.inputs
    yield from (s.operand for s in plan.state)
    for step in plan.steps:
        yield from step.uses
    yield from plan.outputs


def _meet(one: Operand, other: Operand) -> bool:
    return one.storage == other.storage and one.offset < other.end and other.offset < one.end

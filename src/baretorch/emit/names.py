"""The C names of a model, decided once for all its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from baretorch.emit.c import identifier, unique
from baretorch.ir import Array, Graph
from baretorch.plan.types import Operand, Plan


@dataclass(frozen=True)
class Port:
    """An input or output of a method: its parameter name, its macro, and where it lies."""

    name: str
    macro: str
    operand: Operand


@dataclass(frozen=True)
class Method:
    """One run function: its plan, and what its parts are called."""

    plan: Plan
    prefix: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Mapping[str, str]  # the plan's constant -> its C array

    @property
    def run(self) -> str:
        return f"{self.prefix}_run"

    @property
    def ports(self) -> tuple[Port, ...]:
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class Names:
    """A model: its methods share the arena and the constants; equal constants are one array."""

    model: str
    methods: Mapping[str, Method]
    constants: Mapping[str, Array]  # C array -> its data

    @property
    def arena(self) -> str:
        return f"{self.model}_arena"

    @property
    def arena_bytes(self) -> int:
        return max(m.plan.arena for m in self.methods.values())

    @property
    def first(self) -> Method:
        return next(iter(self.methods.values()))


def make_names(name: str, plans: Mapping[str, Plan]) -> Names:
    """Names for a model with these methods. A model with one method is called by the model's name alone."""
    model = identifier(name)
    used = {f"{model}_{own}" for own in ("run", "run_in", "arena", "reset", "reset_in")}
    arrays: dict[str, Array] = {}
    by_content: dict[tuple[str, bytes], str] = {}
    methods = {}
    for key, plan in plans.items():
        prefix = model if len(plans) == 1 else identifier(f"{model}_{key}")
        used |= {f"{prefix}_run", f"{prefix}_run_in"}
        taken: set[str] = set()
        inputs = tuple(_port(prefix, operand, operand.tensor, taken) for operand in plan.inputs)
        labelled = zip(plan.outputs, output_labels(plan.graph), strict=True)
        outputs = tuple(_port(prefix, operand, label, taken) for operand, label in labelled)
        constants = {}
        for c in plan.constants:
            content = (c.data.dtype.name, c.data.tobytes())
            if content not in by_content:
                by_content[content] = unique(f"{model}_{c.name}", used)
                arrays[by_content[content]] = c.data
            constants[c.name] = by_content[content]
        methods[key] = Method(plan, prefix, inputs, outputs, constants)
    return Names(model, methods, arrays)


def output_labels(graph: Graph) -> tuple[str, ...]:
    """What the outputs are called: as the model calls them, else y, or y0, y1 …"""
    single = len(graph.outputs) == 1
    return graph.labels or tuple("y" if single else f"y{i}" for i in range(len(graph.outputs)))


def role(tensor: str) -> str:
    """What a packed constant is to its layer: `net.0.weight_2` is a weight."""
    return re.sub(r"_\d+$", "", identifier(tensor.rsplit(".", 1)[-1]))


def _port(prefix: str, operand: Operand, text: str, taken: set[str]) -> Port:
    name = unique(text, taken)
    return Port(name, f"{prefix}_{name}".upper(), operand)

"""The C names of a model's tensors, decided once for all its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from baretorch.emit.c import identifier, unique
from baretorch.ir import Graph
from baretorch.plan.types import Operand, Plan


@dataclass(frozen=True)
class Port:
    """An input or output of the model: its parameter name, its macro, and its C type."""

    name: str
    macro: str
    operand: Operand


@dataclass(frozen=True)
class Names:
    model: str  # prefix of every global name
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    constants: Mapping[str, str]

    @property
    def upper(self) -> str:
        return self.model.upper()

    @property
    def run(self) -> str:
        return f"{self.model}_run"

    @property
    def arena(self) -> str:
        return f"{self.model}_arena"


def make_names(plan: Plan) -> Names:
    model = identifier(plan.graph.name)
    taken: set[str] = set()
    inputs = tuple(_port(model, operand, operand.tensor, taken) for operand in plan.inputs)
    labelled = zip(plan.outputs, output_labels(plan.graph), strict=True)
    outputs = tuple(_port(model, operand, label, taken) for operand, label in labelled)
    used = {f"{model}_{own}" for own in ("run", "run_in", "arena", "reset", "reset_in")}
    constants = {c.name: unique(f"{model}_{c.name}", used) for c in plan.constants}
    return Names(model, inputs, outputs, constants)


def output_labels(graph: Graph) -> tuple[str, ...]:
    """What the outputs are called: as the model calls them, else y, or y0, y1 …"""
    single = len(graph.outputs) == 1
    return graph.labels or tuple("y" if single else f"y{i}" for i in range(len(graph.outputs)))


def role(tensor: str) -> str:
    """What a packed constant is to its layer: `net.0.weight_2` is a weight."""
    return re.sub(r"_\d+$", "", identifier(tensor.rsplit(".", 1)[-1]))


def _port(model: str, operand: Operand, text: str, taken: set[str]) -> Port:
    name = unique(text, taken)
    return Port(name, f"{model}_{name}".upper(), operand)

"""Compare a quantized file with its own runtime, layer by layer. Each operator runs through the passes separately, with
the runtime's own inputs, and its result is compared with the runtime's own output. The NumPy references of the
resulting integer operators compute it; kernels equal these bit for bit.

A whole model differs by more, because layers pass their differences on; one layer differs by rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from baretorch.ir.distance import distance, largest
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.passes.order import lower_graph


@dataclass(frozen=True, eq=False)
class RecordedLayer:
    """An operator of a file as a Graph of its own, with the inputs that the runtime gave it and the outputs that it
    computed."""

    name: str
    operator: str
    graph: Graph
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass(frozen=True)
class LayerDifference:
    """The distance from the runtime's result: in steps for a quantized output, else relative to its largest number."""

    name: str
    operator: str
    quantized: bool
    elements: int
    differ: int
    largest: float

    def to_json(self) -> dict[str, object]:
        key = "max_lsb" if self.quantized else "max_relative"
        return {"layer": self.name, "operator": self.operator, "elements": self.elements, "differ": self.differ} | {
            key: self.largest
        }


@dataclass(frozen=True)
class Layerwise:
    """The differences of all layers with a quantized output."""

    library: str
    layers: tuple[LayerDifference, ...]

    @property
    def quantized(self) -> tuple[LayerDifference, ...]:
        return tuple(d for d in self.layers if d.quantized)

    @property
    def elements(self) -> int:
        return sum(d.elements for d in self.quantized)

    @property
    def differ(self) -> int:
        return sum(d.differ for d in self.quantized)

    @property
    def largest(self) -> int:
        return int(max((d.largest for d in self.quantized), default=0))

    @property
    def words(self) -> str:
        """Describe the differences, as in `117 of 73,480 numbers differ from LiteRT's, by 1 step at most`."""
        if not self.differ:
            return f"all {self.elements:,} numbers are {self.library}'s"
        steps = "1 step" if self.largest == 1 else f"{self.largest} steps"
        return f"{self.differ:,} of {self.elements:,} numbers differ from {self.library}'s, by {steps} at most"

    def to_json(self) -> dict[str, object]:
        whole = {"library": self.library, "elements": self.elements, "differ": self.differ, "max_lsb": self.largest}
        return {**whole, "layers": [d.to_json() for d in self.layers]}


def compare_layers(library: str, layers: Iterable[RecordedLayer]) -> Layerwise:
    return Layerwise(library, tuple(d for layer in layers for d in _differences(layer)))


def _differences(layer: RecordedLayer) -> list[LayerDifference]:
    graph = lower_graph(layer.graph)
    have = interpret(graph, layer.inputs)
    found = []
    for name, want in zip(graph.outputs, layer.outputs, strict=True):
        steps = graph[name].is_quantized
        apart = distance(have[name], want)
        scale = 1.0 if steps else largest(want) or 1.0
        most, count = float(apart.max(initial=0)), int(np.count_nonzero(apart))
        found.append(LayerDifference(layer.name, layer.operator, steps, want.size, count, most / scale))
    return found

"""Tests use this compiler instead of Vela. It accepts everything, or nothing, and its output cannot run."""

from __future__ import annotations

from dataclasses import dataclass, field

from baretorch.ir.graph import Graph
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.npu.payload import INPUT, OUTPUT, Payload, Slot
from baretorch.npu.vela import VelaRefused, VelaResult
from baretorch.ops.delegate import ALIGNED
from baretorch.targets.parts import Npu

NPU = Npu("ethosu", "ethos-u55-256", 0x58102000, "Ethos_U55_High_End_Embedded", "Sram_Only", "SRAM", "SRAM", 56)


@dataclass
class StandIn:
    """Refuses graphs with an operator called `refuses`; keeps those that it was given."""

    refuses: str = ""
    graphs: list[Graph] = field(default_factory=list)
    scratch: int = 100

    def __call__(self, graph: Graph, npu: Npu) -> VelaResult:
        self.graphs.append(graph)
        if any(node.op.name == self.refuses for node in graph.nodes):
            raise VelaRefused(f"{self.refuses} could not run on NPU")
        inputs, outputs = (self._slots(graph, names, region) for names, region in _sides(graph))
        return VelaResult(
            Payload(ACCELERATORS_BY_NAME[npu.accelerator], bytes(64), bytes(48), self.scratch, 0, inputs, outputs), 1000
        )

    def _slots(self, graph: Graph, names: tuple[str, ...], region: int) -> tuple[Slot, ...]:
        found, at = [], 0
        for t in graph.of(names):
            found.append(Slot(t.shape, 1, region, at))
            at += -(-t.bytes // ALIGNED) * ALIGNED
        return tuple(found)


def _sides(graph: Graph) -> tuple[tuple[tuple[str, ...], int], ...]:
    return (graph.inputs, INPUT), (graph.outputs, OUTPUT)

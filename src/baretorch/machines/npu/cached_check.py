"""Streams are judged when they are compiled for the first time; the user's cache remembers those that are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from baretorch.firmware.cache import fingerprint, recall, remember
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.machines import hooks
from baretorch.machines.npu import stream_check
from baretorch.npu import reference
from baretorch.npu.payload import Payload

RANDOM = 2  # inputs


@dataclass(frozen=True)
class Judgement:
    """Judges streams for regions of a graph, with random inputs and what the regions are given for the examples, which
    are those of the graph's inputs."""

    graph: Graph
    examples: Sequence[Array] | None

    def __call__(self, region: Graph, payload: Payload) -> None:
        """WrongStream if it does not compute the region."""
        key = fingerprint(*_identity(region, payload))
        if recall("npu", key) is not None:
            return
        samples = stream_check.random_inputs(region, RANDOM)
        if self.examples is not None:
            samples.append([self._values[name] for name in region.inputs])
        stream_check.judge(region, payload, samples)
        remember("npu", key, {})

    @cached_property
    def _values(self) -> Mapping[str, Array]:
        assert self.examples is not None
        return interpret(self.graph, self.examples, keep=True)


@cache
def _judge() -> str:
    """The emulated NPU itself: what another one called right is judged anew."""
    files = (*sorted(Path(stream_check.__file__).parent.glob("*.py")), *Path(hooks.__file__).parent.glob("npu_*.c"))
    return fingerprint(*(file.read_bytes() for file in files))


def _identity(graph: Graph, payload: Payload) -> Iterator[str | bytes]:
    """Return a fingerprint of everything that a check depends on."""
    yield _judge()
    yield from (payload.accelerator.name, payload.commands, payload.weights, f"{payload.scratch} {payload.inputs}")
    yield f"{payload.outputs} {reference.installed()}"
    for node in graph.nodes:
        yield f"{node.op!r} {node.inputs} {node.outputs}"
    for t in graph.tensors.values():
        yield f"{t} {t.quant}"
        yield b"" if t.data is None else t.data.tobytes()

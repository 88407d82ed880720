"""Check that a command stream computes its graph: run it on the emulated NPU, and compare every byte of its outputs.

The interpreted Graph defines the correct outputs, and so does Arm's TOSA reference model, if it is installed, for the
TOSA that Vela was given. If outputs differ, the error names the first operation whose result never was in memory. The
user's cache remembers streams that passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from baretorch.errors import InternalError
from baretorch.firmware.cache import fingerprint, recall, remember
from baretorch.ir.graph import Array, Graph, Node, interpret
from baretorch.machines import hooks
from baretorch.machines.npu.commands import Command
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.interpreter import run_payload
from baretorch.machines.npu.registers import Int64s
from baretorch.npu import reference
from baretorch.npu.accelerators import Family
from baretorch.npu.partition import WRONG, WrongStream
from baretorch.npu.payload import Payload
from baretorch.npu.to_tosa import write_region

TRY = "--npu off, or another version of ethos-u-vela"
SEED = 17
RANDOM = 2  # random inputs per stream


def random_inputs(graph: Graph, count: int) -> list[list[Array]]:
    """Return random inputs over the whole range of values, the same every time."""
    rng = np.random.default_rng(SEED)
    shapes = [graph[name].shape for name in graph.inputs]
    return [[rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes] for _ in range(count)]


def judge(graph: Graph, payload: Payload, samples: Iterable[Sequence[Array]]) -> None:
    """Raise WrongStream if the stream's outputs differ from the graph's for any of these inputs."""
    for inputs in samples:
        values = interpret(graph, inputs, keep=True)
        _compare_with_tosa(graph, payload.accelerator.family, inputs, values)
        seen: set[bytes] = set()

        def watch(command: Command, made: Int64s, seen: set[bytes] = seen) -> None:
            seen.add(made.astype(np.int8).tobytes())

        try:
            outputs = run_payload(payload, [x.tobytes() for x in inputs], watch=watch)
        except NpuFault as fault:
            wrong = _wrong(graph, _first_missing(graph, values, seen), "", f"on the emulated NPU: {fault}")
            wrong.sure = False
            raise wrong from None
        for name, output in zip(graph.outputs, outputs, strict=True):
            right = values[name]
            if output != right.tobytes():
                raise _difference(graph, name, right, output, _first_missing(graph, values, seen))


def _difference(graph: Graph, name: str, right: Array, output: bytes, first: Node) -> WrongStream:
    got = np.frombuffer(output, right.dtype).reshape(right.shape).astype(np.int64)
    distance = np.abs(got - right)
    have = f"{np.count_nonzero(distance):,} of {distance.size:,} values of {name} differ, by up to {distance.max()}"
    return _wrong(graph, first, ", the first operation that differs", have)


def _wrong(graph: Graph, first: Node, how: str, have: str) -> WrongStream:
    t = graph[first.outputs[0]]
    made = WrongStream(WRONG, at=f"{t.layer}: {first.op.name}{how}", have=have, try_=TRY)
    made.first = t.name
    return made


def _first_missing(graph: Graph, values: dict[str, Array], seen: set[bytes]) -> Node:
    """Return the first operation whose result was not computed, and from which no correct result was computed."""
    right: set[str] = set()
    for node in reversed(graph.nodes):
        for name in node.outputs:
            if name in right or values[name].tobytes() in seen:
                right |= {name, *node.inputs}
    return next((node for node in graph.nodes if not right & set(node.outputs)), graph.nodes[-1])


def _compare_with_tosa(graph: Graph, family: Family, inputs: Sequence[Array], values: dict[str, Array]) -> None:
    """Compare with Arm's TOSA model; a difference is a bug in Baretorch."""
    if not reference.is_installed():
        return
    region = write_region(graph, family)
    given = {region.values[name].name: x for name, x in zip(graph.inputs, inputs, strict=True)}
    outputs = {name: region.values[name].name for name in graph.outputs if region.values[name].name not in given}
    made = reference.run(region.block.file(), given, list(outputs.values()))
    for name, y in zip(outputs, made, strict=True):
        if y.tobytes() != values[name].tobytes():
            raise InternalError(f"TOSA and the operator {name} have different results")


@dataclass(frozen=True)
class Judgement:
    """Judges streams for regions of a graph: with random inputs, and with the regions' inputs for the graph's
    examples."""

    graph: Graph
    examples: Sequence[Array] | None

    def __call__(self, region: Graph, payload: Payload) -> None:
        """Raise WrongStream if the stream does not compute the region."""
        key = fingerprint(*_identity(region, payload))
        if recall("npu", key) is not None:
            return
        samples = random_inputs(region, RANDOM)
        if self.examples is not None:
            samples.append([self._values[name] for name in region.inputs])
        judge(region, payload, samples)
        remember("npu", key, {})

    @cached_property
    def _values(self) -> Mapping[str, Array]:
        assert self.examples is not None
        return interpret(self.graph, self.examples, keep=True)


@cache
def _emulated_npu() -> str:
    """Return a fingerprint of the emulated NPU: another version judges all streams again."""
    files = (*sorted(Path(__file__).parent.glob("*.py")), *Path(hooks.__file__).parent.glob("npu_*.c"))
    return fingerprint(*(file.read_bytes() for file in files))


def _identity(graph: Graph, payload: Payload) -> Iterator[str | bytes]:
    """Return a fingerprint of everything that a check depends on."""
    yield _emulated_npu()
    yield from (payload.accelerator.name, payload.commands, payload.weights, f"{payload.scratch} {payload.inputs}")
    yield f"{payload.outputs} {reference.is_installed()}"
    for node in graph.nodes:
        yield f"{node.op!r} {node.inputs} {node.outputs}"
    for t in graph.tensors.values():
        yield f"{t} {t.quant}"
        yield b"" if t.data is None else t.data.tobytes()

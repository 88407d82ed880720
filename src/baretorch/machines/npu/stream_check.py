"""Does a stream compute its graph? It is run on the emulated NPU, and every byte of its answers is compared.

What is right says the Graph itself, interpreted, and where it is installed Arm's TOSA reference model, which is asked
for the TOSA that Vela was given. Where answers differ, the first operation is named whose result never was in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, Graph, Node, interpret
from baretorch.machines.npu.commands import Command
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.interpreter import run_payload
from baretorch.machines.npu.registers import Ints
from baretorch.npu import reference
from baretorch.npu.accelerators import Family
from baretorch.npu.lower import lowered
from baretorch.npu.partition import WRONG, WrongStream
from baretorch.npu.payload import Payload

TRY = "--npu off, or another version of ethos-u-vela"
SEED = 17


def random_inputs(graph: Graph, count: int) -> list[list[Array]]:
    """Return random inputs over the whole range of values, the same every time."""
    rng = np.random.default_rng(SEED)
    shapes = [graph[name].shape for name in graph.inputs]
    return [[rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes] for _ in range(count)]


def judge(graph: Graph, payload: Payload, samples: Iterable[Sequence[Array]]) -> None:
    """WrongStream if the stream answers something else than the graph says, for any of these inputs."""
    for inputs in samples:
        values = interpret(graph, inputs, keep=True)
        _compare_with_tosa(graph, payload.accelerator.family, inputs, values)
        seen: set[bytes] = set()

        def watch(command: Command, made: Ints, seen: set[bytes] = seen) -> None:
            seen.add(made.astype(np.int8).tobytes())

        try:
            answers = run_payload(payload, [x.tobytes() for x in inputs], watch=watch)
        except NpuFault as fault:
            wrong = _wrong(graph, _first_missing(graph, values, seen), "", f"on the emulated NPU: {fault}")
            wrong.sure = False
            raise wrong from None
        for name, answer in zip(graph.outputs, answers, strict=True):
            right = values[name]
            if answer != right.tobytes():
                raise _differs(graph, name, right, answer, _first_missing(graph, values, seen))


def _differs(graph: Graph, name: str, right: Array, answer: bytes, first: Node) -> WrongStream:
    got = np.frombuffer(answer, right.dtype).reshape(right.shape).astype(np.int64)
    distance = np.abs(got - right)
    have = f"{np.count_nonzero(distance):,} of {distance.size:,} values of {name} differ, by up to {distance.max()}"
    return _wrong(graph, first, ", the first operation that differs", have)


def _wrong(graph: Graph, first: Node, how: str, have: str) -> WrongStream:
    t = graph[first.outputs[0]]
    made = WrongStream(WRONG, at=f"{t.origin.path or t.name}: {first.op.name}{how}", have=have, try_=TRY)
    made.first = t.name
    return made


def _first_missing(graph: Graph, values: dict[str, Array], seen: set[bytes]) -> Node:
    """The first operation whose result nobody has made, nor anybody something right of it."""
    right: set[str] = set()
    for node in reversed(graph.nodes):
        for name in node.outputs:
            if name in right or values[name].tobytes() in seen:
                right |= {name, *node.inputs}
    return next((node for node in graph.nodes if not right & set(node.outputs)), graph.nodes[-1])


def _compare_with_tosa(graph: Graph, family: Family, inputs: Sequence[Array], values: dict[str, Array]) -> None:
    """Compare with Arm's TOSA model; a difference is a bug in Baretorch."""
    if not reference.installed():
        return
    region = lowered(graph, family)
    given = {region.values[name].name: x for name, x in zip(graph.inputs, inputs, strict=True)}
    outputs = {name: region.values[name].name for name in graph.outputs if region.values[name].name not in given}
    made = reference.run(region.block.file(), given, list(outputs.values()))
    for name, y in zip(outputs, made, strict=True):
        if y.tobytes() != values[name].tobytes():
            raise InternalError(f"TOSA and the operator {name} have different results")

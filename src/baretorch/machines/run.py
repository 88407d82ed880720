"""Image + inputs -> Run: the results of the image, and what it executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.errors import InternalError
from baretorch.escape import c_prefix
from baretorch.ir.graph import Array, Graph
from baretorch.machines.link import Link, Reply
from baretorch.machines.types import Block, ClusterTrace, Cores, FlashReads, Machine


@dataclass(frozen=True)
class Run:
    """The results of two calls of a running image with the same inputs: `outputs` and figures are those of the
    second call. `others` are the outputs of further calls with other inputs."""

    emulator: str
    first: tuple[Array, ...]
    outputs: tuple[Array, ...]
    instructions: int | None
    ticks: int
    stack_peak: int
    blocks: tuple[Block, ...] = ()  # empty if not known
    cores: Cores | None = None  # None for one core
    emulator_cycles: int | None = None  # by the emulator's own table; Baretorch's is in measure/cycles.py
    flash: tuple[FlashReads, ...] | None = None  # None if reading flash costs nothing, or is not known
    trace: ClusterTrace | None = None  # the events in a cluster
    others: tuple[tuple[Array, ...], ...] = ()


def run_on(
    machine: Machine,
    graph: Graph,
    inputs: Sequence[Array],
    timeout: float = 120.0,
    others: Sequence[Sequence[Array]] = (),
) -> Run:
    """Run the example inputs twice on the machine, then each set of `others`; the figures are of the second call."""
    link = open_link(machine, graph)
    first = call_image(link, graph, inputs, timeout)
    reply = link.run([np.ascontiguousarray(x).tobytes() for x in inputs], timeout)
    outputs = decode_outputs(graph, reply.outputs)
    same = (np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, outputs, strict=True))
    if not graph.state and not all(same):
        raise InternalError("the image returned two different results for the same inputs")
    run = collect_figures(
        machine, reply, first, outputs
    )  # before another call, because figures are those of the last one
    return replace(run, others=tuple(call_image(link, graph, x, timeout) for x in others))


def collect_figures(machine: Machine, reply: Reply, first: tuple[Array, ...], outputs: tuple[Array, ...]) -> Run:
    """Return the machine's figures of its last call."""
    return Run(
        emulator=machine.name,
        first=first,
        outputs=outputs,
        instructions=_last(machine.instructions()),
        ticks=reply.ticks,
        stack_peak=reply.stack_peak,
        blocks=machine.blocks(),
        cores=machine.cores(),
        emulator_cycles=_last(machine.cycles()),
        flash=machine.flash_reads(),
        trace=machine.trace(),
    )


def _last(calls: tuple[int, ...]) -> int | None:
    return calls[-1] if calls else None


def open_link(machine: Machine, graph: Graph) -> Link:
    """Return a link to the image; CompileError if it does not hold this model."""
    link = Link(machine, outputs=[t.bytes for t in graph.of(graph.outputs)])
    link.hello(c_prefix(graph.name))
    return link


def call_image(link: Link, graph: Graph, inputs: Sequence[Array], timeout: float = 60.0) -> tuple[Array, ...]:
    """Return the image's outputs for one set of inputs."""
    return decode_outputs(graph, link.run([np.ascontiguousarray(x).tobytes() for x in inputs], timeout).outputs)


def decode_outputs(graph: Graph, outputs: Sequence[bytes]) -> tuple[Array, ...]:
    tensors = graph.of(graph.outputs)
    return tuple(np.frombuffer(raw, t.dtype.numpy).reshape(t.shape) for raw, t in zip(outputs, tensors, strict=True))

"""A booted image that is called like a PyTorch model: tensors or arrays in, arrays out, one start for any number of
inputs."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.distance import is_near
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import Answer, Runner, arrange_inputs, arrange_outputs, real_outputs, store_inputs
from baretorch.ir.ties import indices_of, replace_tied_indices
from baretorch.machines.link import Hello, Reply
from baretorch.machines.run import decode_outputs, open_link
from baretorch.machines.types import DeviceFault, Machine

TOLERANCE = 1e-3  # of the largest magnitude: the allowed difference of fp32 on two machines


class Session:
    """A booted image. Inputs are real numbers or stored values (see `ir/io.py`), outputs real numbers."""

    def __init__(self, machine: Machine, graph: Graph) -> None:
        self.machine = machine
        self._graph = graph
        self._link = open_link(machine, graph)

    def __call__(self, *inputs: Any) -> Answer:
        return self.ask(*inputs)[0]

    def ask(self, *inputs: Any) -> tuple[Answer, Reply]:
        """Return the outputs, and the reply of the image that contains them."""
        arrays = store_inputs(self._graph, arrange_inputs(self._graph, inputs))
        reply = self._link.run([np.ascontiguousarray(x).tobytes() for x in arrays])
        return arrange_outputs(
            self._graph, real_outputs(self._graph, decode_outputs(self._graph, reply.outputs))
        ), reply

    @property
    def hello(self) -> Hello:
        """Return the image's description of itself."""
        return self._link.hello()

    def reset(self) -> None:
        self._link.reset()

    def close(self) -> None:
        self.machine.close()


@dataclass
class Recorder:
    """Runs a model, and records a fingerprint of each input and the outputs for it."""

    run: Runner
    inputs: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def __call__(self, *inputs: Any) -> Answer:
        answer = self.run(*inputs)
        self.inputs.append(_fingerprint(inputs))
        self.answers.append(answer)
        return answer

    def reset(self) -> None:
        self.run.reset()


@dataclass
class Checker:
    """Repeats the inputs of a recording. Those whose numbers are `chosen` are run again, and must have the recorded
    outputs: exactly, or for fp32 nearly. The others return the recorded outputs."""

    run: Runner
    recorded: Recorder
    chosen: Collection[int]
    exact: bool
    name: str  # of the machine, for the error
    graph: Graph
    count: int = 0
    ran: int = 0

    def __call__(self, *inputs: Any) -> Answer:
        index, self.count = self.count, self.count + 1
        if index >= len(self.recorded.answers) or self.recorded.inputs[index] != _fingerprint(inputs):
            raise CompileError(
                f"evaluate() sends other inputs when it is called again, from number {index} on",
                need="the same inputs in the same order each time",
                try_="a fixed seed for random numbers",
            )
        known = self.recorded.answers[index]
        if index not in self.chosen:
            return known
        self.ran += 1
        answer = self.run(*inputs)
        if not self._same(inputs, answer, known):
            raise DeviceFault(
                f"{self.name} and the host return different results for input {index} of evaluate()",
                have=[f"{self.name}: {_brief(answer)}", f"host: {_brief(known)}"],
                need="the same bits" if self.exact else f"a difference below {TOLERANCE:g} of the largest value",
            )
        return answer

    def _same(self, inputs: Sequence[Any], answer: Answer, known: Answer) -> bool:
        """Report whether two outputs are equal except for rounding, and for indices of elements that are equal except
        for rounding."""
        pairs = list(zip(_all(answer), _all(known), strict=True))
        if self.exact:
            return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
        indices = [indices_of(self.graph, name) is not None for name in self.graph.outputs]
        if any(indices):
            pairs = self._up_to_ties(inputs, pairs)
        tolerances = (0.0 if index else TOLERANCE for index in indices)
        return all(is_near(a, b, t) for (a, b), t in zip(pairs, tolerances, strict=True))

    def _up_to_ties(self, inputs: Sequence[Any], pairs: Sequence[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
        """Return pairs of outputs in the memory order of the C interface, in which the first has the indices of the
        second."""
        graph = self.graph
        moved = [(p.to_memory(a), p.to_memory(b)) for p, (a, b) in zip(graph.gives(), pairs, strict=True)]
        want = [b for _, b in moved]
        have = replace_tied_indices(
            graph, store_inputs(graph, arrange_inputs(graph, inputs)), [a for a, _ in moved], want
        )
        return list(zip(have, want, strict=True))

    def reset(self) -> None:
        self.run.reset()


def _fingerprint(inputs: Sequence[Any]) -> int:
    total = 0
    for x in inputs:
        array = np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)
        total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    return total


def _all(answer: Answer) -> tuple[Array, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _brief(answer: Answer) -> str:
    return ", ".join(np.array2string(a.reshape(-1), threshold=8, edgeitems=3) for a in _all(answer))

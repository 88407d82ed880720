"""Run a Graph over many inputs and return the values of some of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from baretorch.ir.graph import Array, Graph, interpret
from baretorch.passes.rewrite import rebuild


class RunGraph(Protocol):
    """Runs a graph: accepts the inputs in memory order and returns the outputs by name. State is carried over."""

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]: ...

    def reset(self) -> None:
        """Set the state to its initial values."""


# Makes a graph ready to be run many times.
OpenRunner: TypeAlias = Callable[[Graph], AbstractContextManager[RunGraph]]


class _Interpreted:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._memory: dict[str, Array] = {}

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]:
        with np.errstate(all="ignore"):  # readers of the values report what overflows
            return interpret(self._graph, inputs, memory=self._memory)

    def reset(self) -> None:
        self._memory.clear()


@contextmanager
def in_numpy(graph: Graph) -> Iterator[RunGraph]:
    """Run a graph by its NumPy references, which are slow and need no compiler."""
    yield _Interpreted(graph)


class _Watching:
    def __init__(self, graph: Graph, known: Mapping[str, Array], run: RunGraph) -> None:
        self._inputs, self._known, self._run = graph.inputs, known, run
        self.reset = run.reset

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]:
        given = dict(zip(self._inputs, inputs, strict=True))
        return {**self._known, **given, **self._run(inputs)}


@contextmanager
def watching(graph: Graph, names: Sequence[str], runner: OpenRunner) -> Iterator[RunGraph]:
    """Run a graph and return the values of these tensors by name: inputs, constants, results, or state that is an
    output."""
    given_back = {s.name for s in graph.state} & set(graph.outputs)
    made = {name for node in graph.nodes for name in node.outputs} | given_back
    outputs = tuple(dict.fromkeys(n for n in names if n in made))
    known = {n: data for n in names if (data := graph[n].data) is not None}
    few = rebuild(replace(graph, outputs=outputs, labels=(), output_orders=()), graph.nodes)
    with runner(few) as run:
        yield _Watching(graph, known, run)

"""Running a Graph with some of its tensors in view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from baretorch.ir.graph import Array, Graph, interpret
from baretorch.passes.rewrite import rebuilt

# The inputs of one run, as they lie in memory -> the outputs by name. State goes on from run to run.
Run: TypeAlias = Callable[[Sequence[Array]], Mapping[str, Array]]
# Gets a graph ready to be run many times.
Runner: TypeAlias = Callable[[Graph], AbstractContextManager[Run]]


@contextmanager
def interpreted(graph: Graph) -> Iterator[Run]:
    """By the NumPy references: slow, and always there."""
    memory: dict[str, Array] = {}

    def run(inputs: Sequence[Array]) -> Mapping[str, Array]:
        with np.errstate(all="ignore"):  # what overflows is told of by those who look at the values
            return interpret(graph, inputs, memory=memory)

    yield run


@contextmanager
def watching(graph: Graph, names: Sequence[str], runner: Runner) -> Iterator[Run]:
    """A run that gives the values of these tensors, which may be inputs, constants and state that is an output too."""
    given_back = {s.name for s in graph.state} & set(graph.outputs)
    made = {name for node in graph.nodes for name in node.outputs} | given_back
    outputs = tuple(dict.fromkeys(n for n in names if n in made))
    known = {n: data for n in names if (data := graph[n].data) is not None}
    few = rebuilt(replace(graph, outputs=outputs, labels=(), output_orders=()), graph.nodes)
    with runner(few) as run:

        def all_(inputs: Sequence[Array]) -> Mapping[str, Array]:
            given = dict(zip(graph.inputs, inputs, strict=True))
            return {**known, **given, **run(inputs)}

        yield all_

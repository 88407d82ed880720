"""What passes make of a model, held against the model itself."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.frontends.source import Source, random_inputs
from baretorch.ir.equivalence import as_it_is, check, difference, graph_answers, own_reference, rounds, unrounded
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import stored


def check_passes(source: Source, method: str, stages: Sequence[tuple[str, Graph]]) -> None:
    """WrongStep, with the first pass after which it is so, if the last of these graphs gives a wrong answer."""
    reference, plain = source.references.get(method), unrounded
    if reference is None or rounds(unrounded(stages[-1][1])):  # the graph itself is all there is to ask
        first = stages[0][1]
        inputs = (
            tuple(stored(first, source.examples))
            if method == source.method
            else random_inputs((t.shape, t.dtype) for t in first.of(first.inputs))
        )
        plain = as_it_is if rounds(unrounded(stages[-1][1])) else unrounded
        reference, stages = own_reference(plain(stages[1][1]), inputs), stages[1:]

    def answers(graph: Graph) -> tuple[Array, ...]:
        return graph_answers(plain(graph), reference.inputs, reference.runs)

    if difference(answers(stages[-1][1]), reference) is not None:
        for name, graph in stages:
            check(f"the pass {name}" if name != "frontend" else "lowering", answers(graph), reference)

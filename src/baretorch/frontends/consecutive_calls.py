"""Makes consecutive calls of a model with different inputs, and computes the correct outputs.

The example inputs come first, twice, because figures are those of a second call. Two other sets of inputs follow, with
state carried on. A model that forgets what it should remember, or the other way round, then gives a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.inputs import variations
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.passes.equivalence import Reference, difference, mover

Inputs = tuple[Array, ...]  # in the memory order of the C interface, as real numbers
Ask = Callable[[Inputs], tuple[Array, ...]]


@dataclass(frozen=True)
class Calls:
    """Inputs of consecutive calls, with the outputs of the `library` for them. If the reference rejected other inputs,
    `rejected` is the reason."""

    inputs: tuple[Inputs, ...]
    expected: tuple[tuple[Array, ...], ...]
    library: str
    begin: Callable[[], Ask]  # the reference, with nothing remembered
    rejected: str | None = None

    @property
    def others(self) -> tuple[Inputs, ...]:
        """Return the inputs after the two calls with the example."""
        return self.inputs[2:]

    def explains(self, answers: Sequence[tuple[Array, ...]]) -> bool:
        """Report whether outputs differ no more than those of the reference do if the inputs change in their last
        bits."""
        flat = tuple(y for ys in self.expected for y in ys)
        reference = Reference(flat, len(self.inputs), self._moved)
        return difference([y for ys in answers for y in ys], reference) is None

    def _moved(self, seed: int) -> tuple[Array, ...]:
        move, ask = mover(seed), self.begin()
        return tuple(y for x in self.inputs for y in ask(tuple(map(move, x))))


def consecutive_calls(source: Source, graph: Graph, own: bool = False, other_inputs: bool = True) -> Calls:
    """Run the reference of a model. It is the model's own library; for a model that Baretorch quantized (`own`), and
    without a library, it is the compiled graph. Without `other_inputs`, only the example is run, twice."""
    begin, library = start_reference(source, graph, own)
    accepted, rejected = [source.examples] * 2, None
    ask = begin()
    known = (source.expected, source.expected_again)
    if graph.state or own or known[0] is None or known[1] is None:
        answers = [ask(x) for x in accepted]
    else:
        answers = [known[0], known[1]]
    for other in variations(source.examples) if other_inputs else ():
        try:
            answers.append(ask(other))
            accepted.append(other)
        except CompileError as error:
            rejected = error.what
            ask = begin()
            for x in accepted if graph.state else ():  # the rejected call may have changed the state
                ask(x)
    return Calls(tuple(accepted), tuple(answers), library, begin, rejected)


def start_reference(source: Source, graph: Graph, own: bool = False) -> tuple[Callable[[], Ask], str]:
    """Return a function that starts a sequence of reference calls for a compiled graph, and the reference's name."""
    if source.eager is None or own:
        return lambda: in_graph(graph), "the graph"
    eager = source.eager

    def begin() -> Ask:
        run, takes, gives = eager(), graph.takes(), graph.gives()

        def ask(inputs: Inputs) -> tuple[Array, ...]:
            found = run(*(port.from_memory(x) for port, x in zip(takes, inputs, strict=True)))
            made = found if isinstance(found, tuple) else (found,)
            return tuple(port.to_memory(y) for port, y in zip(gives, made, strict=True))

        return ask

    return begin, source.library


def in_graph(graph: Graph) -> Ask:
    """Interpret the graph itself; state is kept between calls."""
    memory: dict[str, Array] = {}

    def ask(inputs: Inputs) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            found = interpret(graph, store_inputs(graph, inputs), memory=memory)
        return real_outputs(graph, [found[name] for name in graph.outputs])

    return ask

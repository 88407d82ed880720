"""Check that a rewritten model still gives the results of the original for the example inputs.

A difference is rounding if it is small compared with the output's largest number. It is also rounding if the model's
own output changes as much when its inputs and parameters change in their last bits, as for an argmax of two equal
numbers, or a step function at its edge. A number that equals the model's in double precision is correct too, such as a
variance whose squares are too large for float32. Any larger difference is a fault of the step, and the model is
rejected. What is small follows from the type in which the original computes: float16 and bfloat16 are much coarser than
float32, in which all graphs compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.distance import distance, largest
from baretorch.ir.graph import Array, DType, Graph, Node, interpret
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.passes.rewrite import rebuild
from baretorch.passes.wide_io import wide_io

TOLERANCE = 1e-4  # of an output's largest number: sums in another order stay far below, a lost activation far above
TOLERANCES = {DType.FLOAT16: 2.0**-8, DType.BFLOAT16: 2.0**-5}  # of originals in halves: 8 roundings of its largest one
MOVES = 16  # number of runs of the model with other last bits
MOVE = 2.0**-22  # relative change of a number in these runs: about that of rounding in a layer
FACTOR = 8  # a float difference may be this many times as large as the model's own


class WrongStep(InternalError):
    """Raised when a step of Baretorch changed the results of the model. This is a bug in Baretorch."""

    def __init__(self, step: str, output: int, difference: float, largest: float) -> None:
        super().__init__(
            f"{step} changed what the model computes: output {output} differs by {difference:.3g} for the example "
            f"inputs, where its largest number is {largest:.3g}. Baretorch stops, because the C would be wrong"
        )
        self.step = step


class WrongLayer(WrongStep):
    """Raised when an int8 layer does not compute what its scales mean. This is a bug in Baretorch."""

    def __init__(self, layer: str, steps: float) -> None:
        InternalError.__init__(
            self,
            f"to_int8 changed what {layer} computes: for the example inputs, it is {steps:.3g} steps of its scale away "
            "from the float layer with the same rounded inputs. Baretorch stops, because the C would be wrong",
        )
        self.step = "to_int8"


@dataclass(frozen=True)
class Reference:
    """The correct results. `answers` are the outputs of consecutive runs, in PyTorch's order of dimensions. A seed
    selects results for inputs and parameters that are changed in their last bits; seed 0 changes nothing. `inputs` are
    in the order of the C interface, as real numbers. `exact` computes the results in double precision, or returns None
    if that is not possible. `arithmetic` is the coarsest float type of the original."""

    answers: tuple[Array, ...]
    runs: int
    moved: Callable[[int], tuple[Array, ...]]
    inputs: tuple[Array, ...] = ()
    exact: Callable[[], tuple[Array, ...] | None] = lambda: None
    arithmetic: DType = DType.FLOAT32

    @property
    def tolerance(self) -> float:
        """Return how far results may be from the answers, relative to an output's largest number."""
        return TOLERANCES.get(self.arithmetic, TOLERANCE)


def check(step: str, have: Sequence[Array], reference: Reference) -> None:
    """Raise WrongStep if these results differ from the reference's by more than rounding."""
    wrong = difference(have, reference)
    if wrong is not None:
        raise WrongStep(step, *wrong)


def check_passes(passed: Sequence[tuple[str, Graph]], reference: Reference | None, examples: tuple[Array, ...]) -> None:
    """Compare the last of these graphs with the original model, or with the graph after the first pass if the model
    itself cannot be asked. WrongStep names the first pass after which the answer is wrong. `examples` are inputs as the
    graphs store them; halves are float32 here, at inputs and outputs too."""
    passed = [(name, wide_io(graph)) for name, graph in passed]
    plain = remove_rounding
    if reference is None or rounds(remove_rounding(passed[-1][1])):
        plain = as_it_is if rounds(remove_rounding(passed[-1][1])) else remove_rounding
        reference, passed = own_reference(plain(passed[1][1]), examples), passed[1:]

    def answers(graph: Graph) -> tuple[Array, ...]:
        return run_graph(plain(graph), reference.inputs, reference.runs)

    if difference(answers(passed[-1][1]), reference) is not None:
        for name, graph in passed:
            check(f"the pass {name}" if name != "frontend" else "the frontend", answers(graph), reference)


def difference(have: Sequence[Array], reference: Reference) -> tuple[int, float, float] | None:
    """Return the first wrong output: its number, the largest difference, and its largest number."""
    want = reference.answers
    if len(have) != len(want) or any(h.shape != w.shape for h, w in zip(have, want, strict=True)):
        return 0, float("inf"), 0.0
    limits = [reference.tolerance * largest(w) if w.dtype.kind in "fc" else 0.0 for w in want]
    errors = [distance(h, w) for h, w in zip(have, want, strict=True)]
    if not any((e > limit).any() for e, limit in zip(errors, limits, strict=True)):
        return None
    noise, exact = _noise(reference, limits)
    for i, (e, limit, n) in enumerate(zip(errors, limits, noise, strict=True)):
        wrong = e > limit + (FACTOR if want[i].dtype.kind in "fc" else 1) * n
        if (wrong & ~_equals(have[i], _convert(exact[i], want[i]))).any():
            return i, float(e[wrong].max()), largest(want[i])
    return None


def _convert(exact: Array, want: Array) -> Array:
    """Convert to the type of the other array; numbers that are too large become infinite."""
    with np.errstate(all="ignore"):
        return exact.astype(want.dtype)


def _equals(have: Array, want: Array) -> Array:
    """Compare element by element, up to rounding of floats."""
    limit = TOLERANCE * largest(want) if want.dtype.kind in "fc" else 0.0
    return distance(have, want) <= limit


def _noise(reference: Reference, limits: Sequence[float]) -> tuple[list[Array], tuple[Array, ...]]:
    """Return how far rounding can move each number, and the results in double precision. If a step has damaged the
    model itself, neither excuses a difference."""
    want = reference.answers
    noise = [np.zeros(w.shape) for w in want]
    again = zip(reference.moved(0), want, limits, strict=True)
    if not all((distance(a, b) <= limit).all() for a, b, limit in again):
        return noise, want
    for seed in range(1, MOVES + 1):
        for i, (moved, w) in enumerate(zip(reference.moved(seed), want, strict=True)):
            noise[i] = np.maximum(noise[i], distance(moved, w))
    return noise, reference.exact() or want


def mover(seed: int) -> Callable[[Array], Array]:
    """Return a function that changes numbers in their last bits, at random; with seed 0 it changes nothing."""
    rng = np.random.default_rng(seed)

    def move(x: Array) -> Array:
        if seed == 0 or x.dtype.kind not in "fc":
            return x
        return np.asarray(x * (1 + MOVE * rng.uniform(-1, 1, x.shape)), x.dtype)

    return move


def own_reference(graph: Graph, inputs: tuple[Array, ...]) -> Reference:
    """Make a graph its own reference, for models without another runtime to compare with."""
    runs = 2 if graph.state else 1

    def moved(seed: int) -> tuple[Array, ...]:
        move = mover(seed)
        tensors = {n: t if t.data is None else replace(t, data=move(t.data)) for n, t in graph.tensors.items()}
        return run_graph(replace(graph, tensors=tensors), tuple(map(move, inputs)), runs)

    return Reference(run_graph(graph, inputs, runs), runs, moved, inputs)


def run_graph(graph: Graph, inputs: Sequence[Array], runs: int) -> tuple[Array, ...]:
    """Return the outputs of a graph, run after run, in PyTorch's order of dimensions."""
    memory: dict[str, Array] = {}
    found = []
    for _ in range(runs):
        with np.errstate(all="ignore"):  # a model may overflow, if its original does
            results = interpret(graph, inputs, memory=memory)
        found += [port.from_memory(results[port.tensor.name]) for port in graph.gives()]
    return tuple(found)


def remove_rounding(graph: Graph) -> Graph:
    """Remove nodes that only round: a quantize followed by a dequantize or by the caller."""
    producer = graph.producer()
    rename = {n: producer[n].inputs[0] for n in graph.outputs if n in producer and _only_rounds(producer[n])}
    for node in graph.nodes:
        before = producer.get(node.inputs[0]) if isinstance(node.op, Dequantize) else None
        if before is not None and isinstance(before.op, Quantize):
            rename[node.outputs[0]] = before.inputs[0]
    return rebuild(graph, graph.nodes, rename=rename) if rename else graph


def _only_rounds(node: Node) -> bool:
    return isinstance(node.op, Quantize)


def as_it_is(graph: Graph) -> Graph:
    """Return the graph unchanged, with all rounding."""
    return graph


def rounds(graph: Graph) -> bool:
    """Report whether any computed tensor is rounded to int8."""
    return any(isinstance(node.op, Quantize) for node in graph.nodes)

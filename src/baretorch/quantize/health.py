"""What calibration data shows of an int8 model: noise in its answer, tensors that saturate, tensors that died."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from baretorch.ir import Array, DType, Graph, Node, Quant
from baretorch.quantize.accuracy import sqnr_db
from baretorch.quantize.comparisons import compared, expected_db
from baretorch.quantize.groups import Wanted
from baretorch.quantize.observers import Meant
from baretorch.quantize.simulate import simulated
from baretorch.quantize.watch import Runner, watching

LEAST_DB = 15.0  # of the answer against float; below, a user should know
SATURATED = 0.05  # of a tensor's values at an end of int8, where float has larger ones
CUT_DB = 20.0  # of a tensor against what is cut off it; above, that is hardly heard
JUDGED = 8  # samples at most, beside the example inputs
NAMED = 3  # layers at most
CLEAN_DB = 60.0  # more than int8 gives; what is as good has no noise


@dataclass(frozen=True)
class Health:
    """What the rounding model answers to the example inputs, and warnings about it."""

    answers: tuple[Array, ...]
    warnings: tuple[str, ...]


def judged(
    graph: Graph, wanted: Wanted, examples: Sequence[Array], samples: Sequence[Sequence[Array]], runner: Runner
) -> Health:
    """A noted graph beside itself without rounding, on the example inputs and some of the samples."""
    chosen = samples[:: -(-len(samples) // JUDGED)] if samples else ()
    example, all_ = _Sums(), _Sums()
    rounding = simulated(graph)
    noted = [n for n, t in graph.tensors.items() if t.quant is not None and t.data is None]
    pairs = {n: rounding.rounded.get(n, n) for n in (*noted, *graph.outputs)}
    states = {s.name for s in graph.state}
    pairs = {n: r for n, r in pairs.items() if n not in states or n in graph.outputs}
    answers: tuple[Array, ...] = ()
    with (
        watching(graph, list(pairs), runner) as exact,
        watching(rounding.graph, list(pairs.values()), runner) as rounded,
    ):
        for given in (examples, *chosen):
            first = not answers
            wants, has = exact(given), rounded(given)
            sums = (example, all_) if first else (all_,)
            for some in sums:
                for name, again in pairs.items():
                    some.add(name, wants[name], has[again])
                for group in wanted.groups:
                    for name, meant in group.seen.items():
                        some.see(graph, name, meant, wants[name], has[pairs[name]])
            if first:
                answers = tuple(np.array(has[pairs[n]]) for n in graph.outputs)
    noisy = (*_noisy(graph, example, all_),)
    return Health(answers, (*(noisy or _uncertain(graph, (examples, *chosen), runner)), *_clipped(graph, all_)))


@dataclass
class _Seen:
    """What is seen of a value where it is rounded to int8."""

    count: int = 0
    clipped: int = 0
    power: float = 0.0  # of all its values
    cut: float = 0.0  # of what is cut off
    least: float = float("inf")
    most: float = float("-inf")
    lowest: float = float("inf")  # of what is stored
    highest: float = float("-inf")

    def add(self, real: Array, rounded: Array, quant: Quant) -> None:
        scale, zero = quant.scale[0], quant.zero_point[0]
        wide = real.astype(np.float64)
        steps = wide / scale + zero
        self.count += real.size
        self.clipped += int(((steps > 128) | (steps < -129)).sum())
        self.power += _power(wide)
        self.cut += _power(scale * (steps - steps.clip(-128, 127)))
        self.least, self.most = min(self.least, float(wide.min())), max(self.most, float(wide.max()))
        self.lowest = min(self.lowest, float(rounded.min()))
        self.highest = max(self.highest, float(rounded.max()))


@dataclass
class _Sums:
    """Powers of each value and of its noise, by its name; and what is seen where values are rounded."""

    signal: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)

    def add(self, name: str, wanted: Array, have: Array) -> None:
        if wanted.dtype != np.float32:
            return
        both = np.isfinite(wanted) & np.isfinite(have)
        want, got = (np.where(both, x, 0.0).astype(np.float64) for x in (wanted, have))
        self.signal[name] = self.signal.get(name, 0.0) + _power(want)
        self.error[name] = self.error.get(name, 0.0) + _power(got - want)

    def see(self, graph: Graph, name: str, meant: Meant, wanted: Array, have: Array) -> None:
        quant, real = graph[name].quant, meant.of(wanted)
        if quant is not None and graph[name].dtype is DType.FLOAT32 and real.size:  # else all of it is masked
            self.seen.setdefault(name, _Seen()).add(real, have, quant)

    def db(self, name: str) -> float:
        if name not in self.signal or self.signal[name] == 0:
            return CLEAN_DB
        found = sqnr_db(self.signal[name], self.error[name])
        return CLEAN_DB if found is None else min(found, CLEAN_DB)


def _power(x: Array) -> float:
    return float(np.square(x).sum())


def _noisy(graph: Graph, example: _Sums, all_: _Sums) -> Iterator[str]:
    """The answer is hardly the model's any more."""
    for sums, of in ((example, "example inputs"), (all_, "calibration data")):
        worst = min((sums.db(name) for name in graph.outputs), default=CLEAN_DB)
        if worst < LEAST_DB:
            layers = ", ".join(_blamed(graph, sums)) or "the inputs"
            yield (
                f"accuracy: the int8 answer to the {of} has {worst:.1f} dB signal to noise against float; most noise "
                f"comes from {layers}"
            )
            return


def _uncertain(graph: Graph, inputs: Sequence[Sequence[Array]], runner: Runner) -> Iterator[str]:
    """The answer would not be the model's for other inputs, because it depends on which of two numbers is larger."""
    found = compared(graph)
    if not found:
        return
    db = expected_db(graph, inputs, runner)
    if db is not None and db < LEAST_DB:
        layers = ", ".join(dict.fromkeys(_layer(graph, node.outputs[0]) for node in found))
        yield (
            f"accuracy: numbers are compared in {layers} that int8 hardly tells from each other; the int8 answer to "
            f"other inputs has about {db:.1f} dB signal to noise against float"
        )


def _blamed(graph: Graph, sums: _Sums) -> list[str]:
    """The layers behind which there is more noise than before them, by the power they add to it."""
    added = []
    makers = graph.producer()
    for node in graph.nodes:
        for name in node.outputs:
            if name in sums.signal:
                before = min((sums.db(n) for n in _known(node.inputs, makers, sums)), default=CLEAN_DB)
                noise = 10 ** (-sums.db(name) / 10) - 10 ** (-before / 10)  # beside a signal of 1
                added.append((noise, _layer(graph, _maker(makers, name))))
    ranked = [name for noise, name in sorted(added, key=lambda pair: -pair[0]) if noise > 0]
    return list(dict.fromkeys(ranked))[:NAMED]


def _known(names: Sequence[str], makers: Mapping[str, Node], sums: _Sums) -> Iterator[str]:
    """What was seen of a node's inputs, or of what those are made of inside of a table."""
    for name in names:
        if name in sums.signal:
            yield name
        elif name in makers:
            yield from _known(makers[name].inputs, makers, sums)


def _maker(makers: Mapping[str, Node], name: str) -> str:
    """What made the values that are only moved or picked out."""
    while (node := makers.get(name)) is not None and not node.op.computes and node.inputs:
        name = node.inputs[0]
    return name


def _clipped(graph: Graph, sums: _Sums) -> Iterator[str]:
    for name, seen in sums.seen.items():
        share = seen.clipped / seen.count
        cut_db = sqnr_db(seen.power, seen.cut)
        if share >= SATURATED and cut_db is not None and cut_db < CUT_DB:
            layer = _layer(graph, name)
            yield f"saturated: {share:.0%} of the values of {layer} lie beyond what its int8 scale can hold"
        elif seen.lowest == seen.highest and seen.most > seen.least:
            yield (
                f"dead: all values of {_layer(graph, name)} are equal in int8, and from {seen.least:.3g} to "
                f"{seen.most:.3g} in float"
            )


def _layer(graph: Graph, name: str) -> str:
    """The user's name for what makes a value."""
    return name if name in graph.inputs else graph[name].origin.path or name

"""Warn of an inaccurate int8 model: noise in its outputs, tensors that saturate, and tensors that are constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from math import sqrt

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Quant, interpret
from baretorch.ir.io import as_real, as_stored, store_inputs
from baretorch.quantize.accuracy import check_layers, power, sqnr_db
from baretorch.quantize.calibrate import Calibration
from baretorch.quantize.comparisons import expected_noise, find_comparisons
from baretorch.quantize.groups import Groups
from baretorch.quantize.observers import Values
from baretorch.quantize.probe import EVERYTHING, SHARE, Probe, Ranges, splits_of
from baretorch.quantize.simulate import simulate
from baretorch.quantize.watch import OpenRunner, RunGraph, in_numpy, watching

LEAST_DB = 15.0  # of the outputs against float; below that there is a warning
WORST_DB = 3.0  # of the output of a single call against the average power; below, most of it is noise
SATURATED = 0.05  # the share of a tensor's values that int8 cuts off
CUT_DB = 20.0  # of a tensor against the values that are cut off; above, these hardly matter
CALLS = 128  # the number of calls for a model with state, in which rounding adds up from call to call
UNSEEN_DB = 12.0  # of the outputs for other inputs; this is an estimate, which may be 3 dB off
ENOUGH = 8  # the least number of samples that show how much other inputs may differ
CONSTANT = 1e-3  # the range of a tensor against its largest value, up to which it counts as constant in float too
NAMED = 3  # the largest number of layers in a warning
CLEAN_DB = 60.0  # more than int8 can reach; counts as no noise


def find_warnings(
    graph: Graph,
    int8: Graph,
    groups: Groups,
    examples: Sequence[Array],
    data: Calibration,
    probe: Probe,
    runner: OpenRunner,
) -> tuple[str, ...]:
    """Compare a float graph with scales, which `probe` runs, with the int8 graph that it compiles to, on the example
    inputs and the calibration data. A model with state is called many times in a row, with all samples repeatedly."""
    samples, count = data.kept, data.count
    pairs = _pairs(graph, int8)
    calls = [examples, *samples]
    if graph.state:
        calls = [examples, *islice(cycle(samples or [examples]), max(CALLS - 1, len(samples)))]
    example, shown_data, all_, unseen = _Sums(), _Sums(), _Sums(), _Sums()
    stored = {n for n, other in pairs.items() if int8[other].dtype is not DType.FLOAT32}
    ranges, right = Ranges(probe.groups), list[dict[str, Array]]()
    probe.reset()
    with watching(int8, list(pairs.values()), in_numpy) as rounded:
        for i, given in enumerate(calls):
            wants, has = probe(given), rounded(given)
            if i <= len(samples):
                ranges.see(wants)
                right.append({name: np.array(wants[name]) for name in graph.outputs})
            for sums in (all_, *([shown_data] if i <= len(samples) else []), *([example] if i == 0 else [])):
                for name, other in pairs.items():
                    sums.add(name, wants[name], as_real(int8[other], has[other]))
                for group in groups.activations:
                    for name, relevant in group.seen.items():
                        if name in stored:
                            sums.see(graph, name, relevant, wants[name], as_real(int8[pairs[name]], has[pairs[name]]))
    row = f" over {len(calls)} calls in a row, with state carried on"
    shown = [(example, " to the example inputs"), (shown_data, " to the calibration data"), (all_, row)]
    noisy = (*_noisy(graph, shown if graph.state else shown[:2]),)
    expected = shown_data
    if not noisy:
        calls = calls[: 1 + len(samples)]
        int8_groups = np.array([stored.issuperset(group.seen) for group in probe.groups], bool)
        splits = splits_of(graph)
        probe.reset()
        for i, bounds in ranges.of_others(splits) if len(samples) >= ENOUGH and int8_groups.any() else ():
            has = probe.cut(calls[i], np.where(int8_groups[:, None], bounds, EVERYTHING))
            for name in graph.outputs:
                unseen.add(name, right[i][name], has[name])
        share = SHARE / splits * len(calls) / (1 + count)
        expected = shown_data.plus({name: share * noise for name, noise in unseen.error.items()})
        noisy = (*_unseen(graph, expected, count),)
    if not noisy:
        noisy = (*_uncertain(graph, shown_data, expected, calls, probe, runner),)
    return (*noisy, *dict.fromkeys(_warn_of_clipping(graph, all_)))


def _pairs(graph: Graph, int8: Graph) -> dict[str, str]:
    """Return the tensors with scales, and the outputs, each with the tensor of the compiled graph that holds it."""
    holders = {t.holds: n for n, t in int8.tensors.items() if t.dtype is DType.FLOAT32 and t.data is None}
    holders |= {t.holds: n for n, t in int8.tensors.items() if t.dtype is not DType.FLOAT32 and t.data is None}
    states = {s.name for s in graph.state}
    noted = [n for n, t in graph.tensors.items() if t.quant is not None and t.data is None and n not in states]
    found = {n: holders[graph[n].holds] for n in noted if graph[n].holds in holders}
    same = {n: other for n, other in found.items() if int8[other].shape == graph[n].shape}
    return same | dict(zip(graph.outputs, int8.outputs, strict=True))


def simulate_answers(graph: Graph, int8: Graph, examples: Sequence[Array]) -> tuple[Array, ...]:
    """Return the outputs of a float graph with scales, rounded where the graph that it compiles to is int8. Raise
    WrongLayer if a layer of that graph computes something else."""
    pairs = _pairs(graph, int8)
    stays = {n for n, other in pairs.items() if int8[other].dtype is DType.FLOAT32 and n not in graph.outputs}
    made = {t.holds for t in int8.tensors.values() if t.dtype is not DType.FLOAT32}
    stays |= {n for n in graph.outputs if graph[n].holds not in made}
    tensors = {n: replace(t, quant=None) if n in stays else t for n, t in graph.tensors.items()}
    rounding = simulate(replace(graph, tensors=tensors))
    with np.errstate(all="ignore"):  # readers of the values report what overflows
        values = interpret(rounding, examples, keep=True)
        right = {
            t.holds: values[n] for n, t in rounding.tensors.items() if n in values
        }  # the rounded value is the last
        given = dict(zip(int8.inputs, store_inputs(int8, examples), strict=True))
        check_layers(int8, right, given | {s.name: as_stored(int8[s.name], s.initial) for s in int8.state})
    return tuple(values[name] for name in rounding.outputs)


@dataclass
class _Seen:
    """Statistics of a tensor where it is rounded to int8."""

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
        self.power += power(wide)
        self.cut += power(scale * (steps - steps.clip(-128, 127)))
        self.least, self.most = min(self.least, float(wide.min())), max(self.most, float(wide.max()))
        self.lowest = min(self.lowest, float(rounded.min()))
        self.highest = max(self.highest, float(rounded.max()))


@dataclass
class _Sums:
    """Powers of each tensor and of its noise, by its name, and statistics of those that are rounded."""

    signal: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)  # the noise of a single call
    count: dict[str, int] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)

    def add(self, name: str, wanted: Array, have: Array) -> None:
        if wanted.dtype not in (np.float32, np.bool_):  # an index is not a quantity
            return
        both = np.isfinite(wanted) & np.isfinite(have)
        want, got = (np.where(both, x, 0.0).astype(np.float64) for x in (wanted, have))
        error = power(got - want)
        self.count[name] = self.count.get(name, 0) + 1
        self.signal[name] = self.signal.get(name, 0.0) + power(want)
        self.error[name] = self.error.get(name, 0.0) + error
        self.worst[name] = max(self.worst.get(name, 0.0), error)

    def see(self, graph: Graph, name: str, relevant: Values, wanted: Array, have: Array) -> None:
        quant, real = graph[name].quant, relevant.select(wanted)
        if quant is not None and graph[name].dtype is DType.FLOAT32 and real.size:  # else all of it is masked
            self.seen.setdefault(name, _Seen()).add(real, have, quant)

    def db(self, name: str) -> float:
        return self._ratio(name, self.error)

    def plus(self, noise: Mapping[str, float]) -> _Sums:
        """Return these sums with more noise."""
        return replace(self, error={name: error + noise.get(name, 0.0) for name, error in self.error.items()})

    def rms(self, graph: Graph, name: str) -> float:
        """Return the average error of a single value."""
        return sqrt(self.error[name] / max(1, self.count[name] * graph[name].count))

    def worst_db(self, name: str) -> float:
        """Return the ratio for the worst call, against the average power of all calls: a faint result may be noisy."""
        return self._ratio(name, self.worst, self.count.get(name, 1))

    def _ratio(self, name: str, errors: Mapping[str, float], count: int = 1) -> float:
        if name not in self.signal or self.signal[name] == 0:
            return CLEAN_DB
        found = sqnr_db(self.signal[name] / count, errors[name])
        return CLEAN_DB if found is None else min(found, CLEAN_DB)


def _noisy(graph: Graph, shown: Sequence[tuple[_Sums, str]]) -> Iterator[str]:
    """Warn once if an output has too much noise: on average over all calls, or in the worst call."""
    for sums, to in shown:
        worst = min((sums.db(name) for name in graph.outputs), default=CLEAN_DB)
        single = min((sums.worst_db(name) for name in graph.outputs), default=CLEAN_DB)
        if worst < LEAST_DB or single < WORST_DB:
            layers = ", ".join(_noisiest_layers(graph, sums)) or "the inputs"
            answer = (worst, "the int8 result") if worst < LEAST_DB else (single, "the worst int8 result")
            yield (
                f"accuracy: {answer[1]}{to} has {answer[0]:.1f} dB signal to noise against float; most noise comes "
                f"from {layers}"
            )
            return


def _unseen(graph: Graph, expected: _Sums, count: int) -> Iterator[str]:
    """Warn if the calibration data hardly covers the range of values."""
    worst = min(map(expected.db, graph.outputs), default=CLEAN_DB)
    if worst < UNSEEN_DB:
        yield (
            f"accuracy: {count} calibration samples hardly cover the range of values; the int8 result for other inputs "
            f"has about {worst:.1f} dB signal to noise against float, and more samples would help"
        )


def _uncertain(
    graph: Graph, data: _Sums, expected: _Sums, inputs: Sequence[Sequence[Array]], exact: RunGraph, runner: OpenRunner
) -> Iterator[str]:
    """Warn if outputs for other inputs may be wrong because rounding can reverse comparisons of numbers."""
    far = find_comparisons(graph, {name: data.rms(graph, name) for name in data.error})
    if not far:
        return
    noise = expected_noise(graph, far, inputs, exact, runner)
    more = {name: max(0.0, noise[name] - data.error.get(name, 0.0)) for name in noise}  # some of it was measured
    worst = min(map(expected.plus(more).db, graph.outputs), default=CLEAN_DB)
    if worst < LEAST_DB:
        layers = ", ".join(dict.fromkeys(_layer(graph, node.outputs[0]) for node in far))
        yield (
            f"accuracy: rounding to int8 can reverse comparisons in {layers} (argmax, <, ==); the int8 result for "
            f"other inputs has about {worst:.1f} dB signal to noise against float"
        )


def _noisiest_layers(graph: Graph, sums: _Sums) -> list[str]:
    """Return the layers that add most noise, by its power."""
    added = []
    makers = graph.producer()
    for node in graph.nodes:
        for name in node.outputs:
            if name in sums.signal:
                before = min((sums.db(n) for n in _known(node.inputs, makers, sums)), default=CLEAN_DB)
                noise = 10 ** (-sums.db(name) / 10) - 10 ** (-before / 10)  # relative to a signal of 1
                added.append((noise, _layer(graph, _maker(makers, name))))
    ranked = [name for noise, name in sorted(added, key=lambda pair: -pair[0]) if noise > 0]
    return list(dict.fromkeys(ranked))[:NAMED]


def _known(names: Sequence[str], makers: Mapping[str, Node], sums: _Sums) -> Iterator[str]:
    """Yield the inputs of a node with statistics; for one inside a table, the tensors from which it is computed."""
    for name in names:
        if name in sums.signal:
            yield name
        elif name in makers:
            yield from _known(makers[name].inputs, makers, sums)


def _maker(makers: Mapping[str, Node], name: str) -> str:
    """Return the tensor whose values this one holds, moved or selected."""
    while (node := makers.get(name)) is not None and not node.op.computes and node.inputs:
        name = node.inputs[0]
    return name


def _warn_of_clipping(graph: Graph, sums: _Sums) -> Iterator[str]:
    for name, seen in sums.seen.items():
        share = seen.clipped / seen.count
        cut_db = sqnr_db(seen.power, seen.cut)
        if share >= SATURATED and cut_db is not None and cut_db < CUT_DB:
            layer = _layer(graph, name)
            yield f"saturated: {share:.0%} of the values of {layer} are outside the range of its int8 scale"
        elif seen.lowest == seen.highest and seen.most - seen.least > CONSTANT * max(abs(seen.most), abs(seen.least)):
            yield (
                f"dead: all values of {_layer(graph, name)} are equal in int8, and from {seen.least:.3g} to "
                f"{seen.most:.3g} in float"
            )


def _layer(graph: Graph, name: str) -> str:
    """Return the user's name of the layer that computes a tensor."""
    return name if name in graph.inputs else graph[name].layer

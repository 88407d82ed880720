"""Measure how much each choice harms the model's outputs, and select the choices that a search begins with.

Harm is measured for each choice alone, on calibration data. A greedy sequence of choices leads from the whole model to
a small one; each step has the least harm for what it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.frontends.choices import Arguments
from baretorch.ir.graph import Array
from baretorch.quantize.precisions import Precision
from baretorch.tune.workbench import Choice, Workbench

PARTS = 32  # of the channels of a set; a choice keeps some of them
LEAST = 4
NOTCH = 2
TRIED = (24, 16, 8)  # parts of a set that are kept while its harm is measured
THIN_TRIED = (12, 8, 4)  # parts of a layer's weights that are kept; with more parts, it is kept whole
DENSE = 4 / 5  # bytes of dense weights, compared with fours that are stored one by one
JUDGED = 64  # samples at most
WHOLE: Arguments = {}
BITS = {
    Precision.INT4: 4.0,
    Precision.INT4G32: 4.25,
    Precision.INT8: 8.0,
    Precision.INT16: 8.0,
    Precision.FLOAT: 32.0,
    Precision.FLOAT16: 16.0,
}


@dataclass(frozen=True)
class Harm:
    """Noise relative to the power of the outputs: of int8, of int8 with one layer in another precision, and of float
    with some channels of one set removed, by the number of parts that are kept."""

    int8: float
    layers: Mapping[str, Mapping[Precision, float]]
    sets: Mapping[str, Mapping[int, float]]

    def of(self, choice: Choice, parts: Mapping[str, int]) -> float:
        """Estimate the harm of a choice as the sum of its parts."""
        noise = sum(max(self.layers[n][p] - self.int8, 0.0) for n, p in choice.layers.items())
        return noise + sum(_interpolate(self.sets[name], kept) for name, kept in parts.items())


def _interpolate(known: Mapping[int, float], kept: int) -> float:
    points = sorted({**known, PARTS: 0.0, 0: 1.0}.items())
    return float(np.interp(kept, [x for x, _ in points], [y for _, y in points]))


def find_harm(bench: Workbench, show: Callable[[str, int, int], None]) -> Harm:
    """Measure each choice alone, in a run over calibration data."""
    half, others = bench.split_samples()
    others = others[:JUDGED]
    right = bench.answers(bench.graph, others)
    whole = _noise(right, bench.answers(bench.int8(bench.variant(Choice())), others))
    total = len(bench.layers) + len(bench.sets) + len(bench.thins)
    layers: dict[str, dict[Precision, float]] = {}
    for i, layer in enumerate(bench.layers):
        show(f"sensitivity of {layer}", i, total)
        tried = {p: bench.variant(Choice({layer: p})) for p in bench.options_of(layer)}
        layers[layer] = {p: _noise(right, bench.answers(bench.int8(v), others)) for p, v in tried.items()}
    sets: dict[str, dict[int, float]] = {}
    for i, found in enumerate(bench.sets, len(bench.layers)):
        show(f"channels of {found.name}", i, total)
        kept = {parts: half.variant(Choice(kept=channels_kept(bench, {found.name: parts}))) for parts in TRIED}
        sets[found.name] = {parts: _noise(right, bench.answers(v.graph, others)) for parts, v in kept.items()}
    for i, layer in enumerate(bench.thins, len(bench.layers) + len(bench.sets)):
        show(f"weights of {layer}", i, total)
        kept = {parts: half.variant(Choice(thin={layer: parts})) for parts in THIN_TRIED}
        sets[weight_set_of(layer)] = {parts: _noise(right, bench.answers(v.graph, others)) for parts, v in kept.items()}
    return Harm(whole, layers, sets)


def _noise(right: Sequence[Array], found: Sequence[Array]) -> float:
    power = sum(float(np.square(x.astype(np.float64)).sum()) for x in right)
    wrong = sum(float(np.square(x.astype(np.float64) - y).sum()) for x, y in zip(right, found, strict=True))
    return min(wrong / max(power, 1e-30), 1.0)


def weight_set_of(layer: str) -> str:
    """Return the name of a layer's weights among the sets."""
    return f"weights of {layer}"


def make_choice(
    bench: Workbench, layers: Mapping[str, Precision], parts: Mapping[str, int], arguments: Arguments = WHOLE
) -> Choice:
    """Make a choice. Layers with removed weights are in int8; layers that a width or size does not have are omitted."""
    given = {layer: parts.get(weight_set_of(layer), PARTS) for layer in bench.thins}
    thin = {layer: count for layer, count in given.items() if count <= THIN_TRIED[0]}
    own = {n: p for n, p in layers.items() if n not in thin and n in bench.layers}
    return Choice(own, channels_kept(bench, parts), thin, arguments)


def channels_kept(bench: Workbench, parts: Mapping[str, int]) -> dict[str, int]:
    """Convert the kept parts of sets to numbers of channels; large numbers are multiples of four, for fast kernels."""
    counts = {}
    for found in bench.sets:
        kept = found.count * parts.get(found.name, PARTS) / PARTS
        many = 4 * round(kept / 4) if found.count >= 32 else round(kept)
        if parts.get(found.name, PARTS) < PARTS and max(many, 1) < found.count:
            counts[found.name] = max(many, 1)
    return counts


@dataclass(frozen=True)
class Point:
    """A choice with the kept `parts` of each set; `size` and `work` are relative to the whole model."""

    choice: Choice
    parts: Mapping[str, int]
    size: float
    work: float


def greedy_points(bench: Workbench, harm: Harm, work_counts: bool) -> Iterator[Point]:
    """Yield choices from the whole model in int8 down, always saving bytes of weights, or work too, with least harm."""
    layers, parts = dict[str, Precision](), dict[str, int]()
    whole = _estimate(bench, Choice(), {})
    steps: dict[str, Sequence[int]] = {c.name: range(PARTS - NOTCH, LEAST - 1, -NOTCH) for c in bench.sets}
    steps |= {weight_set_of(layer): THIN_TRIED for layer in bench.thins}

    def point() -> Point:
        choice = make_choice(bench, layers, parts)
        size, work = _estimate(bench, choice, parts)
        return Point(choice, dict(parts), size / whole[0], work / whole[1])

    while True:
        here = point()
        yield here
        noise = harm.of(here.choice, parts)
        moves = []
        for layer in harm.layers:
            if layer not in layers and layer not in here.choice.thin and Precision.INT4 in harm.layers[layer]:
                moves.append(({**layers, layer: Precision.INT4}, parts))
        for name in filter(steps.__contains__, harm.sets):
            fewer = [n for n in steps[name] if n < parts.get(name, PARTS)]
            if fewer and name not in map(weight_set_of, layers):
                moves.append((layers, {**parts, name: fewer[0]}))
        scored = []
        for new_layers, new_parts in moves:
            choice = make_choice(bench, new_layers, new_parts)
            size, work = _estimate(bench, choice, new_parts)
            saved = here.size - size / whole[0] + (here.work - work / whole[1] if work_counts else 0.0)
            if saved > 1e-6:
                scored.append(((harm.of(choice, new_parts) - noise) / saved, new_layers, new_parts))
        if not scored:
            return
        _, layers, parts = min(scored, key=lambda move: move[0])


def even_points(bench: Workbench, harm: Harm) -> Iterator[Point]:
    """Yield choices with all layers in int4 and the same part of all sets, which a search rarely finds by chance."""
    whole = _estimate(bench, Choice(), {})
    layers = {name: Precision.INT4 for name, known in harm.layers.items() if Precision.INT4 in known}
    for kept in range(PARTS, LEAST - 1, -1):
        parts = {found.name: kept for found in bench.sets}
        choice = make_choice(bench, layers, parts)
        size, work = _estimate(bench, choice, parts)
        yield Point(choice, parts, size / whole[0], work / whole[1])


def _estimate(bench: Workbench, choice: Choice, parts: Mapping[str, int]) -> tuple[float, float]:
    """Estimate the bytes of weights and the number of multiplications."""
    graph = bench.graph
    rows = {n.outputs[0]: parts.get(c.name, PARTS) / PARTS for c in bench.sets for n in c.makers}
    columns = {n.outputs[0]: parts.get(c.name, PARTS) / PARTS for c in bench.sets for n in c.readers}
    size, work = 1e-9, 1e-9
    for node in graph.nodes:
        y = node.outputs[0]
        part = rows.get(y, 1.0) * columns.get(y, 1.0)
        work += part * node.op.macs(graph.of(node.inputs), graph.of(node.outputs))
        layer = graph[y].origin.path or y
        precision = choice.layers.get(layer, Precision.INT8)
        part *= choice.thin[layer] / PARTS / DENSE if layer in choice.thin else 1.0
        for t in graph.of(node.inputs):
            size += part * t.count * BITS[precision] / 8 if t.data is not None and len(t.shape) > 1 else 0
    return size, work


def starting_points(points: Sequence[Point], sizes: Sequence[float], works: Sequence[float]) -> list[Point]:
    """Return the first points that are as small as each pair of size and work, without duplicates."""
    found: list[Point] = []
    for size, work in zip(sizes, works, strict=True):
        small = [p for p in points if p.size <= size and p.work <= work]
        found += small[:1]
    return list({id(p): p for p in found}.values())

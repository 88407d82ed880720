"""Tries the kernels that fit a model's layers on the emulator, and keeps what is best.

On one core a profile tells what each layer took, so that one image tries another kernel for every layer at once. On a
cluster only the whole run is known: there one layer is changed at a time, first its kernel, then its cut; and in the
end its tiles (tile_search.py). What was measured is kept in the user's cache by the image's C, compiler and chip, so
that it is measured once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from baretorch.explore.tile_search import Progress, search_tiles
from baretorch.firmware.cache import fingerprint, recall, remember
from baretorch.firmware.toolchain import find_toolchain
from baretorch.frontends import Source
from baretorch.ops import kernels_of
from baretorch.ops.kernel import Call
from baretorch.options import Options
from baretorch.outputs import scratch, write_scratch
from baretorch.pipeline import Compiled, build_image, compile_graphs, compile_source, run_image
from baretorch.plan.choices import ANY, PLANNED, Choice, Cost, Row, Shape, Tiling, Way, layer_of, to_json
from baretorch.plan.cores import cluster, cuts_of
from baretorch.report.kernels import Measured, Searched
from baretorch.report.profile import make_profile
from baretorch.targets.types import Board

LEAST = 0.005  # share of the products that a layer must have to be tried alone


@dataclass
class Bench:
    """Measures a model with ways for some of its layers."""

    source: Source
    board: Board
    options: Options
    folder: Path
    built: int = 0
    known: int = 0

    @cached_property
    def plain(self) -> Compiled:
        return compile_source(self.source, self.board, self.options)

    @property
    def cores(self) -> int:
        return self.plain.options.shared_cores

    @property
    def cpu(self) -> str:
        return self.board.chip.cpu.name

    @cached_property
    def compiler(self) -> str:
        return find_toolchain(self.board, self.options.toolchain).version

    @cached_property
    def facts(self) -> str:
        """All that the TOML says of the chip, as sizes and times of units, which the C does not tell."""
        return repr({**vars(self.board.chip), "cpu": self.cpu})

    def compiled(self, ways: Mapping[str, Way], shapes: Mapping[str, Shape] | None = None) -> Compiled:
        """With these ways and tiles; the layers of a model that are not among them take what they do when nothing was
        measured."""
        chip, tiles = self.board.chip.name, {"": PLANNED, **(shapes or {})}
        rows = [Tiling(chip, self.cores, ANY, layer, shape, {}) for layer, shape in tiles.items()]
        return self.compiled_with([*(Choice(self.cpu, self.cores, *one, {}) for one in ways.items()), *rows])

    def compiled_with(self, rows: Iterable[Row]) -> Compiled:
        path = self.folder / "kernels.json"
        write_scratch(path, to_json(rows))
        options = replace(self.options, kernels=str(path))
        return compile_graphs(self.source, self.plain.graphs, self.board, options)

    def measured(self, compiled: Compiled) -> Measured:
        options, c = compiled.options, compiled.c
        tools = (self.board.name, self.compiler, str(options.emulator), str(options.code), str(options.optimize))
        files = (c.glue, *(c.files[name] for name in sorted(c.files)))
        texts = (text.replace(str(self.folder), "") for text in files)
        key = fingerprint(*tools, self.facts, *texts)
        found = _kept(recall("kernels", key))
        if found is None:
            self.built += 1
            found = self._run(compiled)
            remember("kernels", key, {"measured.json": _to_json(found).encode()})
        else:
            self.known += 1
        return found

    def _run(self, compiled: Compiled) -> Measured:
        with scratch() as folder:
            image = build_image(compiled, folder)
            run = run_image(compiled, image)
            if self.board.chip.cluster is not None:
                assert run.emulator_cycles is not None and run.instructions is not None
                return Measured(Cost(run.emulator_cycles, run.instructions), {}, compiled.plan.arena)
            profile = make_profile(compiled, image, run)
        layers: dict[str, Cost] = {}
        for step, layer in zip(compiled.plan.steps, profile.layers, strict=True):
            key, before = layer_of(step.call), layers.get(layer_of(step.call), Cost(0, 0))
            cycles = round(layer.time.all.expected)
            layers[key] = Cost(before.cycles + cycles, before.instructions + layer.instructions)
        whole = Cost(round(profile.time.all.expected), profile.instructions)
        return Measured(whole, layers, compiled.plan.arena)


def search(source: Source, board: Board, options: Options, by: str, progress: Progress) -> Searched:
    """The best kernel for each kind of layer, by `cycles` or `instructions`."""
    with scratch() as folder:
        bench = Bench(source, board, options, folder)
        slots = {layer: ways for layer, ways in _slots(bench) if len(ways) > 1}
        first = {layer: ways[0] for layer, ways in slots.items()}
        before = bench.measured(bench.compiled(first))
        one_by_one = _alone if not before.layers and slots else _together
        tried = one_by_one(bench, slots, before, by, progress)
        best = {layer: min(each, key=lambda way: _by(each[way], by)) for layer, each in tried.items()}
        after, best = _within(bench, before, first, best, tried, by)
        rows: tuple[Row, ...] = tuple(
            Choice(bench.cpu, bench.cores, layer, best[layer], each) for layer, each in tried.items()
        )
        if board.chip.cluster is not None:
            tiles, after = _tiles(bench, {**first, **best}, after, by, progress)
            rows = (*rows, *tiles)
        return Searched(rows, before, after, bench.built, bench.known)


def _tiles(
    bench: Bench, ways: Mapping[str, Way], before: Measured, by: str, progress: Progress
) -> tuple[tuple[Tiling, ...], Measured]:
    """What is best beside these ways, and a run with it, planned from the rows as others will."""
    plain = bench.compiled(ways)

    def measure(shapes: Mapping[str, Shape]) -> Measured:
        return bench.measured(bench.compiled(ways, shapes))

    found = search_tiles(plain.plan, bench.board.chip.name, bench.cores, measure, lambda cost: _by(cost, by), progress)
    choices = (Choice(bench.cpu, bench.cores, layer, way, {}) for layer, way in ways.items())
    after = bench.measured(bench.compiled_with([*choices, *found]))
    if after.arena <= before.arena and _by(after.whole, by) <= _by(before.whole, by):
        return found, after
    return tuple(replace(row, take=PLANNED) for row in found), before


def _by(cost: Cost, by: str) -> tuple[int, int]:
    pair = (cost.cycles, cost.instructions)
    return pair if by == "cycles" else (pair[1], pair[0])


def _slots(bench: Bench) -> Iterator[tuple[str, list[Way]]]:
    """Every kind of layer that a core computes, with the kernels that fit it, the planner's first."""
    plan, cpu = bench.plain.plan, bench.board.chip.cpu
    elsewhere = {step.call.y.name for step in plan.steps if step.kernel.unit}
    computed = {step.nodes[0].outputs[0] for step in plan.steps}
    graph = plan.graph
    for node in graph.nodes:
        if node.outputs[0] in computed and node.outputs[0] not in elsewhere:
            call: Call[Any] = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
            fitting = [k for k in kernels_of(node.op) if k.needs.met_by(cpu.features) and k.fits(call)]
            yield layer_of(call), [Way(k.symbol) for k in fitting]


def _together(
    bench: Bench, slots: Mapping[str, Sequence[Way]], before: Measured, by: str, progress: Progress
) -> dict[str, dict[Way, Cost]]:
    """All layers at once, each in its next way."""
    tried = {layer: {ways[0]: before.layers[layer]} for layer, ways in slots.items() if layer in before.layers}
    rounds = max((len(slots[layer]) for layer in tried), default=1)
    for i in range(1, rounds):
        progress(f"try kernel {i + 1} of {rounds}", i, rounds)
        ways = {layer: slots[layer][min(i, len(slots[layer]) - 1)] for layer in tried}
        found = bench.measured(bench.compiled(ways))
        for layer in tried:
            if i < len(slots[layer]):
                tried[layer][slots[layer][i]] = found.layers[layer]
    return tried


def _alone(
    bench: Bench, slots: Mapping[str, Sequence[Way]], before: Measured, by: str, progress: Progress
) -> dict[str, dict[Way, Cost]]:
    """One layer after the other: its kernels, then the cuts of the best, beside what was best of those before."""
    graph = bench.plain.plan.graph
    calls = {layer_of(c): c for c in (Call(n.op, graph.of(n.inputs), graph.of(n.outputs)) for n in graph.nodes)}
    macs = {layer: call.op.macs(call.inputs, call.outputs) for layer, call in calls.items() if layer in slots}
    worth = [layer for layer in slots if macs[layer] >= LEAST * sum(macs.values())]
    best: dict[str, Way] = {layer: ways[0] for layer, ways in slots.items()}
    tried: dict[str, dict[Way, Cost]] = {}
    now, team = before.whole, cluster(bench.cores)
    for i, layer in enumerate(worth):
        each = tried[layer] = {slots[layer][0]: now}
        for way in slots[layer][1:]:
            progress(f"try layer {i + 1} of {len(worth)}", i, len(worth))
            each[way] = bench.measured(bench.compiled(best | {layer: way})).whole
        best[layer] = min(each, key=lambda way, each=each: _by(each[way], by))  # type: ignore[misc]
        kernel = next(k for k in kernels_of(calls[layer].op) if k.symbol == best[layer].kernel)
        for number in range(cuts_of(calls[layer], kernel, team)):
            progress(f"try layer {i + 1} of {len(worth)}", i, len(worth))
            way = Way(kernel.symbol, number)
            each[way] = bench.measured(bench.compiled(best | {layer: way})).whole
        best[layer] = min(each, key=lambda way, each=each: _by(each[way], by))  # type: ignore[misc]
        now = each[best[layer]]
    return tried


def _within(
    bench: Bench,
    before: Measured,
    first: Mapping[str, Way],
    best: dict[str, Way],
    tried: Mapping[str, Mapping[Way, Cost]],
    by: str,
) -> tuple[Measured, dict[str, Way]]:
    """All choices together. The arena must not grow for them: those that gain least go first."""

    def gain(layer: str) -> int:
        return _by(tried[layer][first[layer]], by)[0] - _by(tried[layer][best[layer]], by)[0]

    order = sorted((layer for layer in best if best[layer] != first[layer]), key=gain)
    while True:
        after = bench.measured(bench.compiled({**first, **best}))
        better = _by(after.whole, by) <= _by(before.whole, by)
        if (after.arena <= before.arena and better) or not order:
            return after, best
        layer = order.pop(0)
        best[layer] = first[layer]


def _to_json(found: Measured) -> str:
    layers = {layer: [c.cycles, c.instructions] for layer, c in found.layers.items()}
    return json.dumps({"whole": [found.whole.cycles, found.whole.instructions], "layers": layers, "arena": found.arena})


def _kept(entry: Mapping[str, bytes] | None) -> Measured | None:
    """Return what was measured before; None if it is not known, or was written by another version."""
    if entry is None:
        return None
    try:
        said = json.loads(entry["measured.json"])
        layers = {str(layer): Cost(*map(int, cost)) for layer, cost in said["layers"].items()}
        return Measured(Cost(*map(int, said["whole"])), layers, int(said["arena"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None

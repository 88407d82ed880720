"""What a choice makes of a model: its int8 graph, what that costs on the board, and how well it does its task.

Costs are not estimated: images are built, and run on the emulated chip. What was measured of a layer is kept, so that
an image whose layers are all known need not run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.firmware.fit import roomy
from baretorch.frontends.choices import Arguments
from baretorch.frontends.model_file import Evaluate
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array, Graph, Node, Quant, Tensor
from baretorch.ir.io import Answer, arrange_inputs, arrange_outputs, real_outputs, store_inputs
from baretorch.machines.host_program import on_host
from baretorch.measure.run import Measured, measure_model
from baretorch.ops.int8.groups_of_inputs import GROUP
from baretorch.options import Options
from baretorch.passes.order import FLOAT, run_passes
from baretorch.passes.prune import Channels, channels, without
from baretorch.pipeline import Compiled, build_image, compile_graph, lower_graph
from baretorch.plan.schedule import Step
from baretorch.quantize.calibrate import calibrate, checked, seen_names
from baretorch.quantize.config import IN_FLOAT, Config, Precision
from baretorch.quantize.groups import wanted
from baretorch.quantize.narrow_requant import with_narrow
from baretorch.quantize.quantize import made_by, with_scales
from baretorch.quantize.watch import RunGraph, watching
from baretorch.targets.features import Feature
from baretorch.targets.types import Board
from baretorch.tune.refine import Grid
from baretorch.tune.result import or_no_number
from baretorch.tune.shrink import Moments, find_moments, removal_order, shrunk
from baretorch.tune.thin import FOUR, can_be_thin, thinned

JUDGED = 256  # samples at most that channels and layers are judged by
KEPT = 8  # graphs whose scales are remembered
THIN = 32
LITTLE = 1e-3
LOSSES = {"loss", "error", "errors", "err", "mse", "rmse", "mae", "wer", "cer", "perplexity"}
TURNED = {"minus", "negative", "neg", "no", "free", "less"}  # words for what is more of less
GRIDS = {Precision.INT4: Grid(4), Precision.INT4G32: Grid(4, GROUP)}  # of weights of other bits than 8


@dataclass(frozen=True)
class Choice:
    """Layers with another precision than int8, how many channels are kept of the sets of which some are not, and of
    layers in int8 how many of `THIN` parts of their weights; and which of the models that the file offers."""

    layers: Mapping[str, Precision] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    thin: Mapping[str, int] = field(default_factory=dict)
    arguments: Arguments = field(default_factory=dict)

    @property
    def floats(self) -> tuple[str, ...]:
        return tuple(name for name, p in self.layers.items() if p in IN_FLOAT)

    def __str__(self) -> str:
        words = [f"{name} {value}" for name, value in self.arguments.items()]
        words += [f"{name} in {p.value}" for name, p in self.layers.items()]
        words += [f"{n} channels kept of {name}" for name, n in self.kept.items()]
        words += [f"{n / THIN:.0%} of the weights of {name}" for name, n in self.thin.items()]
        return ", ".join(words) or "int8"


@dataclass(frozen=True)
class Costs:
    """Bytes and time of an image; `ram` without weights that are copied only because there is room, but with those of a
    cluster, whose scratchpad is made for them; instructions of its layers, without the calls between them, where those
    can be told apart. The time is not known of an image that does not fit the board, and where all layers are known and
    nobody asked for it. `lacks` says how much more of flash or RAM it would take than the board has, beside that; 0 if
    it fits."""

    flash: int
    ram: int
    instructions: int
    milliseconds: float | None = None
    lacks: float = 0.0


@dataclass(frozen=True)
class Variant:
    """A choice with weights of its own: the float graph, without what is left out, and what to write down of it."""

    choice: Choice
    graph: Graph
    removed: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, Array]

    def config(self, weights: Path) -> Config:
        return Config(self.choice.layers, self.removed, weights, self.choice.arguments)


@dataclass
class Workbench:
    """A model as it was read, in float, the board, and options for all images; `train` is the model file's
    train(model), or says why there is none; `timed`: every image is run."""

    source: Source
    board: Board
    options: Options
    task: Evaluate
    train: Callable[[Any], object] | str
    timed: bool = False
    tell: Callable[[str], None] = lambda what: None
    _variants: dict[object, Variant] = field(default_factory=dict)
    _scales: dict[object, tuple[Graph, Mapping[str, Quant]]] = field(default_factory=dict)
    _costs: dict[object, Costs] = field(default_factory=dict)
    _layers: dict[object, int] = field(default_factory=dict)  # instructions of what was run
    _orders: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """After the float passes."""
        return run_passes(self.source.graph, FLOAT)[-1][1]

    @cached_property
    def samples(self) -> list[tuple[Array, ...]]:
        """Calibration data, as it lies in memory."""
        given: Iterable[Any] = self.source.calibration or ()
        return [checked(sample, self.graph.takes(), i) for i, sample in enumerate(given)]

    def halved(self) -> tuple[Workbench, list[tuple[Array, ...]]]:
        """Another that knows half of the samples, and the others: what was made to fit some is judged by others."""
        half = replace(self, _variants={}, _orders={})
        half.graph, half.samples = self.graph, self.samples[::2]
        return half, self.samples[1::2] or self.samples

    @property
    def judged(self) -> list[tuple[Array, ...]]:
        """Some of the samples, evenly spread."""
        return self.samples[:: -(-len(self.samples) // JUDGED)]

    @cached_property
    def sets(self) -> tuple[Channels, ...]:
        found = channels(self.graph)
        names = [c.name for c in found]
        return tuple(c for c in found if names.count(c.name) == 1)

    @cached_property
    def moments(self) -> Moments:
        self.tell("channels")
        return find_moments(self.graph, self.sets, self.judged, on_host)

    def options_of(self, layer: str) -> list[Precision]:
        """The precisions that a layer can have beside int8."""
        return [p for p in Precision if p is not Precision.INT8 and self._can(layer, p)]

    def _can(self, layer: str, precision: Precision) -> bool:
        try:
            self.int8(self.variant(Choice({layer: precision})))
        except CompileError:
            return False
        return True

    @cached_property
    def layers(self) -> list[str]:
        """What has weights, by the names that a configuration may use."""
        layers = [n for n in self.graph.nodes if n.op.name in ("linear", "conv2d")]
        names = dict.fromkeys(self.graph[n.outputs[0]].origin.path or n.outputs[0] for n in layers)
        return [name for name in names if self._can(name, Precision.INT4)]

    def grids(self, variant: Variant) -> dict[str, Grid]:
        """Of each layer's weights, by what the layer makes; layers in float are not there."""
        found: dict[str, Grid] = {}
        for layer in self.layers:
            precision = variant.choice.layers.get(layer, Precision.INT8)
            made = made_by(self.source.graph, variant.graph, [layer])
            if precision not in IN_FLOAT:
                found |= dict.fromkeys(made, GRIDS.get(precision, Grid(8)))
        return found

    def variant(self, choice: Choice) -> Variant:
        """The graph without the channels that are missed least, and weights that make up for them."""
        key = (tuple(sorted(choice.kept.items())), tuple(sorted(choice.thin.items())))
        if key not in self._variants:
            removed = {c: self._removed(c, choice.kept[c.name]) for c in self.sets if c.name in choice.kept}
            graph = shrunk(self.graph, removed, self.moments) if removed else self.graph
            parts = {y: n / THIN for layer, n in choice.thin.items() for y in self._made(graph, layer)}
            graph = thinned(graph, parts, self.judged, on_host) if parts else graph
            self._variants[key] = self.other(Choice(), {c.name: n for c, n in removed.items()}, graph)
        return replace(self._variants[key], choice=choice)

    def _made(self, graph: Graph, layer: str) -> set[str]:
        return made_by(self.source.graph, graph, [layer])

    @cached_property
    def thins(self) -> list[str]:
        """Layers of which weights can be left out; none on cores whose dense kernels are always faster."""
        if self.board.chip.cpu.features & {Feature.MVE, Feature.XCV, Feature.AVR}:
            return []
        able = {n.outputs[0] for n in self.graph.nodes if can_be_thin(self.graph, n)}
        return [name for name in self.layers if able.intersection(self._made(self.graph, name))]

    def thin_nodes(self, variant: Variant) -> list[Node]:
        """Those of which some were."""
        made = {y for layer in variant.choice.thin for y in self._made(variant.graph, layer)}
        return [n for n in variant.graph.nodes if n.outputs[0] in made and can_be_thin(variant.graph, n)]

    def _removed(self, found: Channels, kept: int) -> tuple[int, ...]:
        if found.name not in self._orders:
            self._orders[found.name] = removal_order(self.graph, found, self.moments)
        return tuple(sorted(self._orders[found.name][: found.count - kept]))

    def other(self, choice: Choice, removed: Mapping[str, tuple[int, ...]], graph: Graph) -> Variant:
        """With the weights of a graph that others changed."""
        plain = without(self.graph, removed)
        new = {t.name: t.data for t in graph.constants() if t.data is not None}
        old = {t.name: t.data for t in plain.constants() if t.data is not None}
        return Variant(choice, graph, removed, {n: x for n, x in new.items() if not np.array_equal(x, old[n])})

    def scales(self, variant: Variant) -> Mapping[str, Quant]:
        """By calibration data."""
        graph, before = variant.graph, self.source.graph
        key = (id(graph), variant.choice.floats)
        if key not in self._scales:
            chosen = wanted(graph, made_by(before, graph, variant.choice.floats))
            given = [tuple(p.from_memory(x) for p, x in zip(graph.takes(), s, strict=True)) for s in self.samples]
            with watching(graph, seen_names(graph, chosen), on_host) as run:
                found = calibrate(graph, chosen, given, self.options.observer, run)
            self._scales[key] = (graph, found.scales)
            for old in list(self._scales)[1:-KEPT]:  # the first is that of the model itself
                del self._scales[old]
        return self._scales[key][1]

    def int8(self, variant: Variant) -> Graph:
        """Return the graph as the image will have it."""
        graph, before = variant.graph, self.source.graph
        kept = made_by(before, graph, variant.choice.floats)
        noted = with_scales(before, graph, self.scales(variant), variant.choice.layers, kept)
        return lower_graph(with_narrow(noted) if self.board.chip.cpu.prefers_narrow else noted, self.options.io)

    @cached_property
    def weight_bytes(self) -> int:
        """Of the whole model in int8."""
        return self._compiled(self.int8(self.variant(Choice())), roomy(self.board)).plan.weight_bytes()

    def costs(self, graph: Graph) -> Costs:
        """Of an int8 graph."""
        try:
            compiled = self._compiled(graph, self.board)
            fits = True
        except CompileError:
            compiled, fits = self._compiled(graph, roomy(self.board)), False
        key = (compiled.c.files["model.c"], compiled.plan.weight_bytes())
        if key not in self._costs:
            with scratch() as folder:
                self._costs[key] = self._measured(compiled, folder, fits)
        return self._costs[key]

    def _compiled(self, graph: Graph, board: Board) -> Compiled:
        return compile_graph(self.source, graph, board, self.options)

    def _measured(self, compiled: Compiled, folder: Path, fits: bool) -> Costs:
        try:
            image = build_image(compiled, folder)
        except CompileError:
            if not fits:
                raise
            large = self._compiled(compiled.graph, roomy(self.board))
            return self._measured(large, folder, False)
        steps = [step_key(step) for step in compiled.plan.steps]
        known = all(key in self._layers for key in steps)
        milliseconds, together = None, None
        if fits and (self.timed or not known):
            found = measure_model(compiled, image)
            counts = _by_layer(found)
            self._layers.update(zip(steps, counts, strict=False))
            together = None if counts else found.run.instructions
            milliseconds = None if found.time is None else 1e3 * found.time.all.expected / self.board.chip.clock_hz
        counted = zip(steps, _macs(compiled), strict=True)  # what cannot be run, and nobody ran before
        instructions = together or sum(self._layers.get(key, macs) for key, macs in counted)
        ram = image.ram.total - (image.ram.weights if not self.board.chip.has_scratchpad else 0)
        lacks = 0.0 if fits else self._lacks(image.flash.total, ram)
        return Costs(image.flash.total, ram, instructions, milliseconds, lacks)

    def _lacks(self, flash: int, ram: int) -> float:
        """Of an image that does not fit, for whatever reason."""
        chip = self.board.chip
        return max(flash / chip.memory(chip.code).size - 1, ram / chip.memory(chip.data).size - 1, LITTLE)

    def original(self, metric: str | None) -> tuple[str, float]:
        """The metric that is meant, and what the model itself reaches; its graph, where there is nobody else to ask."""
        eager = self.source.eager
        found = self.task(eager()) if eager is not None else self.metrics(self.graph)
        name = metric or next(iter(found))
        if name not in found:
            raise CompileError(f"--metric {name}: evaluate() does not return it", have=", ".join(found))
        if not isfinite(found[name]):
            raise CompileError(
                f"evaluate() returns {found[name]} for {name!r} of the model itself", need="a number to compare with"
            )
        words = set(re.findall("[a-z]+", name.lower()))
        if words & LOSSES and not words & TURNED:
            others = [other for other in found if not LOSSES & set(re.findall("[a-z]+", other.lower()))]
            raise CompileError(
                f"tune: of {name!r}, the less the better",
                have=f"evaluate() returns {', '.join(map(repr, found))}",
                need="a number of which more is better",
                try_=[
                    *(f"--metric {shlex.quote(other)}" for other in others[:1]),
                    f"let evaluate() return its negative, too: {{{f'minus {name}'!r}: …}}, and --metric 'minus {name}'",
                ],
            )
        return name, found[name]

    def metrics(self, graph: Graph) -> dict[str, float]:
        """What evaluate() of the model file says of a graph, in C on this computer."""
        with _OnHost(graph) as run:
            return self.task(run)

    def accuracy(self, graph: Graph, metric: str) -> float:
        """One of the metrics; NO_NUMBER of a graph so bad that evaluate() finds none."""
        found = self.metrics(graph)
        if metric not in found:
            raise CompileError(
                f"evaluate() does not return {metric!r} for each model",
                have=", ".join(found),
                need="the same names each time",
            )
        return or_no_number(found[metric])

    def answers(self, graph: Graph, samples: Sequence[Sequence[Array]]) -> list[Array]:
        """As real numbers: what a float graph and an int8 one are compared by."""
        with on_host(graph) as run:
            found = [run(store_inputs(graph, sample)) for sample in samples]
            return [y for values in found for y in real_outputs(graph, [values[n] for n in graph.outputs])]


def need_tunable(source: Source) -> None:
    """CompileError if there is nothing to choose, or nothing to choose by."""
    if source.graph.is_quantized:
        raise CompileError("tune: the model is quantized already", need="a model in float")
    if len(source.graphs) > 1:
        raise CompileError("tune: a model with several methods cannot be quantized yet", have=", ".join(source.graphs))
    if source.calibration is None:
        raise CompileError(
            "tune: the model brings no calibration data",
            need="calibration() in the model file, or --calibration: samples of the kind it will see, some hundred",
        )


def step_key(step: Step) -> object:
    """Layers that are alike in this take the same instructions."""
    weights = tuple(_used(t) for t in step.call.inputs[1:2] if t.data is not None)
    return (step.function, step.params, tuple(t.type for t in step.call.inputs), weights)


def _used(weight: Tensor) -> bytes:
    """How many fours of each row are not zero: some kernels leave the others out. Tables have no rows."""
    data = weight.data
    if data is None or data.ndim < 2 or not data.size or data.shape[-1] % FOUR:
        return b""
    return np.asarray(data.reshape(len(data), -1, FOUR).any(axis=2).sum(axis=1), np.int32).tobytes()


def _by_layer(measured: Measured) -> list[int]:
    """Instructions of each step; none where the emulator tells only those of all, or several steps are a layer."""
    try:
        layers = measured.profile.layers
    except CompileError:
        layers = ()
    return [layer.instructions for layer in layers] if len(layers) == len(measured.compiled.plan.steps) else []


def _macs(compiled: Compiled) -> list[int]:
    """Multiplications of each step."""
    calls = [step.call for step in compiled.plan.steps]
    return [call.op.macs(call.inputs, call.outputs) for call in calls]


class _OnHost:
    """Runs a graph as evaluate() asks for it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._stack = ExitStack()

    def __enter__(self) -> _OnHost:
        self._run: RunGraph = self._stack.enter_context(on_host(self._graph))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def __call__(self, *inputs: Any) -> Answer:
        graph = self._graph
        found = self._run(store_inputs(graph, arrange_inputs(graph, inputs)))
        return arrange_outputs(graph, real_outputs(graph, [found[n] for n in graph.outputs]))

    def reset(self) -> None:
        if self._graph.state:  # the program begins anew
            self._stack.close()
            self._run = self._stack.enter_context(on_host(self._graph))

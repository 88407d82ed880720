"""Measure a choice: make its int8 graph, and measure the costs on the board and the accuracy.

Costs are not estimated: images are built and run on the emulated chip. Measurements of layers are kept, so that an
image need not run if all of its layers are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.files.write import scratch
from baretorch.firmware.sizes import with_large_memories
from baretorch.frontends.choices import Arguments, Offer
from baretorch.frontends.model_file import Evaluate
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array, Graph, Node, Quant, Tensor
from baretorch.ir.io import Answer, arrange_inputs, arrange_outputs, real_outputs, store_inputs
from baretorch.machines.host_program import on_host
from baretorch.measure.facts import differs_from_graph
from baretorch.measure.run import Measurement, measure_model
from baretorch.measure.sizes import build_for_sizes
from baretorch.ops.int8.groups_of_inputs import GROUP
from baretorch.options import Options
from baretorch.passes.prune import Channels, channels, drop_channels
from baretorch.pipeline import Compiled, build_image, compile_graph, finish_graph, optimize
from baretorch.plan.schedule import Step
from baretorch.quantize.calibrate import check_sample
from baretorch.quantize.config import Config
from baretorch.quantize.precisions import IN_FLOAT, Precision
from baretorch.quantize.quantize import Preparation, outputs_of_layers, prepare
from baretorch.quantize.watch import RunGraph
from baretorch.targets.features import Feature
from baretorch.targets.types import Board
from baretorch.tune.refine import Grid
from baretorch.tune.result import Costs, or_no_number
from baretorch.tune.shrink import FOUR, Moments, can_be_thin, find_moments, removal_order, remove_channels, thin_weights

JUDGED = 256  # samples at most, for the importance of channels and weights
KEPT = 8  # graphs whose scales are remembered
THIN = 32
LITTLE = 1e-3
GRIDS = {Precision.INT4: Grid(4), Precision.INT4G32: Grid(4, GROUP)}  # of weights of other bits than 8


@dataclass(frozen=True)
class Choice:
    """The layers with another precision than int8, the numbers of channels that are kept of some sets, the numbers of
    `THIN` parts that are kept of some layers' weights, and the arguments of the file's model()."""

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
        words += [f"{n} channels in {name}" for name, n in self.kept.items()]
        words += [f"{n / THIN:.0%} of the weights of {name}" for name, n in self.thin.items()]
        return ", ".join(words) or "int8"


@dataclass(frozen=True)
class Variant:
    """A choice with its float graph, the removed channels, and the weights that differ from the model's."""

    choice: Choice
    graph: Graph
    removed: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, Array]

    def config(self, weights: Path) -> Config:
        return Config(self.choice.layers, self.removed, weights, self.choice.arguments)


@dataclass
class Workbench:
    """A float model, the board, and options for all images. `train` is the model file's train(model), or the reason why
    there is none. If `timed`, every image is run."""

    source: Source
    board: Board
    options: Options
    task: Evaluate
    train: Callable[[Any], object] | str
    timed: bool = False
    show_stage: Callable[[str], None] = lambda what: None
    _variants: dict[object, Variant] = field(default_factory=dict)
    _scales: dict[object, tuple[Graph, Mapping[str, Quant]]] = field(default_factory=dict)
    _costs: dict[object, Costs] = field(default_factory=dict)
    _layers: dict[object, int] = field(default_factory=dict)  # instructions of layers that were run
    _orders: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """Return the graph after the float passes."""
        return optimize(self.source)

    @cached_property
    def samples(self) -> list[tuple[Array, ...]]:
        """Return the calibration data in memory order."""
        given: Iterable[Any] = self.source.calibration or ()
        return [check_sample(sample, self.graph.takes(), i) for i, sample in enumerate(given)]

    def split_samples(self) -> tuple[Workbench, list[tuple[Array, ...]]]:
        """Return a workbench with one half of the samples, and the other half, which is for testing its results."""
        half = replace(self, _variants={}, _orders={}, _scales={})
        half.graph, half.samples = self.graph, self.samples[::2]
        return half, self.samples[1::2] or self.samples

    @property
    def judged(self) -> list[tuple[Array, ...]]:
        """Return some of the samples, evenly spread."""
        return self.samples[:: -(-len(self.samples) // JUDGED)]

    @cached_property
    def sets(self) -> tuple[Channels, ...]:
        """The sets of channels. Where several have the name of one layer, each is called what the layer makes."""
        found = channels(self.graph)
        count = Counter(c.name for c in found)
        named = (c if count[c.name] == 1 else replace(c, name=c.makers[0].outputs[0]) for c in found)
        return tuple(c for c in named if count[c.name] < 2)

    @cached_property
    def moments(self) -> Moments:
        self.show_stage("channels")
        return find_moments(self.graph, self.sets, self.judged, on_host)

    def options_of(self, layer: str) -> list[Precision]:
        """Return the precisions other than int8 that a layer can have."""
        return [p for p in Precision if p is not Precision.INT8 and self._can(layer, p)]

    def _can(self, layer: str, precision: Precision) -> bool:
        try:
            self.int8(self.variant(Choice({layer: precision})))
        except CompileError:
            return False
        return True

    @cached_property
    def layers(self) -> list[str]:
        """Return the layers with weights, by the names that a configuration may use."""
        layers = [n for n in self.graph.nodes if n.op.name in ("linear", "conv2d")]
        names = dict.fromkeys(self.graph[n.outputs[0]].origin.path or n.outputs[0] for n in layers)
        return [name for name in names if self._can(name, Precision.INT4)]

    def grids(self, variant: Variant) -> dict[str, Grid]:
        """Return the grids of the weights of layers that are not in float, by the layers' outputs."""
        found: dict[str, Grid] = {}
        for layer in self.layers:
            precision = variant.choice.layers.get(layer, Precision.INT8)
            made = outputs_of_layers(self.source.graph, variant.graph, [layer])
            if precision not in IN_FLOAT:
                found |= dict.fromkeys(made, GRIDS.get(precision, Grid(8)))
        return found

    def variant(self, choice: Choice) -> Variant:
        """Make a variant: remove the least important channels and weights, and let the others compensate for them."""
        key = (tuple(sorted(choice.kept.items())), tuple(sorted(choice.thin.items())))
        if key not in self._variants:
            removed = {c: self._channels_to_remove(c, choice.kept[c.name]) for c in self.sets if c.name in choice.kept}
            graph = remove_channels(self.graph, removed, self.moments) if removed else self.graph
            parts = {y: n / THIN for layer, n in choice.thin.items() for y in self._outputs(graph, layer)}
            graph = thin_weights(graph, parts, self.judged, on_host) if parts else graph
            self._variants[key] = self.other(Choice(), {c.name: n for c, n in removed.items()}, graph)
        return replace(self._variants[key], choice=choice)

    def _outputs(self, graph: Graph, layer: str) -> set[str]:
        return outputs_of_layers(self.source.graph, graph, [layer])

    @cached_property
    def thins(self) -> list[str]:
        """Return the layers whose weights can be removed; none on cores whose dense kernels are always faster."""
        if self.board.chip.cpu.features & {Feature.MVE, Feature.XCV, Feature.AVR}:
            return []
        able = {n.outputs[0] for n in self.graph.nodes if can_be_thin(self.graph, n)}
        return [name for name in self.layers if able.intersection(self._outputs(self.graph, name))]

    def thin_nodes(self, variant: Variant) -> list[Node]:
        """Return the layers of a variant with removed weights."""
        made = {y for layer in variant.choice.thin for y in self._outputs(variant.graph, layer)}
        return [n for n in variant.graph.nodes if n.outputs[0] in made and can_be_thin(variant.graph, n)]

    def _channels_to_remove(self, found: Channels, kept: int) -> tuple[int, ...]:
        if found.name not in self._orders:
            self._orders[found.name] = removal_order(self.graph, found, self.moments)
        return tuple(sorted(self._orders[found.name][: found.count - kept]))

    def other(self, choice: Choice, removed: Mapping[str, tuple[int, ...]], graph: Graph) -> Variant:
        """Return a variant with the weights of a changed graph."""
        plain = drop_channels(self.graph, removed)
        new = {t.name: t.data for t in graph.constants() if t.data is not None}
        old = {t.name: t.data for t in plain.constants() if t.data is not None}
        return Variant(choice, graph, removed, {n: x for n, x in new.items() if not np.array_equal(x, old[n])})

    def scales(self, variant: Variant) -> Mapping[str, Quant]:
        """Return the scales of a variant, from calibration data."""
        graph = variant.graph
        key = (id(graph), variant.choice.floats)
        if key not in self._scales:
            given = [tuple(p.from_memory(x) for p, x in zip(graph.takes(), s, strict=True)) for s in self.samples]
            self._scales[key] = (graph, self._prepare(variant).find_scales(given, self.options.observer, on_host))
            for old in list(self._scales)[1:-KEPT]:  # the first is that of the model itself
                del self._scales[old]
        return self._scales[key][1]

    def int8(self, variant: Variant) -> Graph:
        """Return the int8 graph of the image."""
        noted = self._prepare(variant).with_scales(self.scales(variant))
        return finish_graph(noted, self.board, self.options.io)

    def _prepare(self, variant: Variant) -> Preparation:
        return prepare(self.source.graph, variant.graph, Config(variant.choice.layers))

    @cached_property
    def weight_bytes(self) -> int:
        """Return the bytes of weights of the whole model in int8."""
        return self._compile(self.int8(self.variant(Choice())), with_large_memories(self.board)).plan.weight_bytes()

    def costs(self, graph: Graph) -> Costs:
        """Measure the costs of an int8 graph."""
        try:
            compiled = self._compile(graph, self.board)
            fits = True
        except CompileError:
            compiled, fits = self._compile(graph, with_large_memories(self.board)), False
        key = (compiled.c.files["model.c"], compiled.plan.weight_bytes())
        if key not in self._costs:
            with scratch() as folder:
                self._costs[key] = self._measure(compiled, folder, fits)
        return self._costs[key]

    def _compile(self, graph: Graph, board: Board) -> Compiled:
        return compile_graph(self.source, graph, board, self.options)

    def _measure(self, compiled: Compiled, folder: Path, fits: bool) -> Costs:
        try:
            image = build_image(compiled, folder)
        except CompileError:
            if not fits:
                raise
            image, fits = build_for_sizes(compiled, folder), False
        keys = [step_key(step) for step in compiled.plan.steps]
        known = all(key in self._layers for key in keys)
        milliseconds, together = None, None
        if fits and (self.timed or not known):
            found = measure_model(compiled, image)
            if wrong := differs_from_graph(compiled, found.run):
                raise InternalError(f"the image of a choice is wrong on the emulated chip: {wrong}")
            counts = _by_layer(found)
            self._layers.update(zip(keys, counts, strict=False))
            together = None if counts else found.run.instructions
            milliseconds = None if found.time is None else 1e3 * found.time.all.expected / self.board.chip.clock_hz
        counted = zip(keys, _macs(compiled), strict=True)  # MACs stand for layers that were never run
        instructions = together or sum(self._layers.get(key, macs) for key, macs in counted)
        ram = image.ram.total - (image.ram.weights if not self.board.chip.has_scratchpad else 0)
        lacks = 0.0 if fits else self._lacks(image.flash.total, ram)
        return Costs(image.flash.total, ram, instructions, milliseconds, lacks)

    def _lacks(self, flash: int, ram: int) -> float:
        """Return the share of memory that the board lacks for an image that does not fit, for whatever reason."""
        chip = self.board.chip
        return max(flash / chip.memory(chip.code).size - 1, ram / chip.memory(chip.data).size - 1, LITTLE)

    def original_metrics(self) -> dict[str, float]:
        """Return the metrics of the original model, or of its graph if the original cannot be run."""
        eager = self.source.eager
        return dict(self.task(eager())) if eager is not None else self.metrics(self.graph)

    def metrics(self, graph: Graph) -> dict[str, float]:
        """Run the model file's evaluate() with a graph, in C on the host."""
        with on_host(graph) as run:
            return self.task(_GraphRunner(graph, run))

    def accuracy(self, graph: Graph, metric: str) -> float:
        """Return one of the metrics; NO_NUMBER if it is not a finite number."""
        found = self.metrics(graph)
        if metric not in found:
            raise CompileError(
                f"evaluate() does not return {metric!r} for each model",
                have=", ".join(found),
                need="the same names each time",
            )
        return or_no_number(found[metric])

    def answers(self, graph: Graph, samples: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the outputs as real numbers, so that float and int8 graphs can be compared."""
        with on_host(graph) as run:
            found = [run(store_inputs(graph, sample)) for sample in samples]
            return [y for values in found for y in real_outputs(graph, [values[n] for n in graph.outputs])]


@dataclass
class Benches:
    """The workbenches of the models that a file offers, in all widths and sizes, made on demand."""

    offer: Offer
    make: Callable[[Arguments], Workbench]
    _made: dict[object, Workbench] = field(default_factory=dict)

    def of(self, arguments: Arguments) -> Workbench:
        key = tuple(sorted(arguments.items()))
        if key not in self._made:
            self._made[key] = self.make(arguments)
        return self._made[key]

    @property
    def default(self) -> Workbench:
        return self.of(self.offer.default)

    def all(self) -> list[Arguments]:
        """Return all widths and sizes that can be chosen, the default first."""
        names = list(self.offer.choices)
        every = [dict(zip(names, values, strict=True)) for values in product(*self.offer.choices.values())]
        return sorted(every, key=lambda arguments: arguments != self.offer.default)


def need_tunable(source: Source) -> None:
    """Raise CompileError if there is nothing to choose, or no data to choose by."""
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
    """Return a key of a layer: layers with the same key take the same instructions."""
    weights = tuple(_count_fours(t) for t in step.call.inputs[1:2] if t.data is not None)
    return (step.function, step.params, tuple(t.type for t in step.call.inputs), weights)


def _count_fours(weight: Tensor) -> bytes:
    """Count the nonzero fours of each row, because some kernels skip the others. Tables have no rows."""
    data = weight.data
    if data is None or data.ndim < 2 or not data.size or data.shape[-1] % FOUR:
        return b""
    return np.asarray(data.reshape(len(data), -1, FOUR).any(axis=2).sum(axis=1), np.int32).tobytes()


def _by_layer(measured: Measurement) -> list[int]:
    """Return the instructions of each step. The list is empty if the emulator does not count per layer, or if a layer
    has several steps."""
    try:
        layers = measured.profile.layers
    except CompileError:
        layers = ()
    return [layer.instructions for layer in layers] if len(layers) == len(measured.compiled.plan.steps) else []


def _macs(compiled: Compiled) -> list[int]:
    """Return the multiplications of each step."""
    calls = [step.call for step in compiled.plan.steps]
    return [call.op.macs(call.inputs, call.outputs) for call in calls]


@dataclass
class _GraphRunner:
    """Runs a graph for evaluate()."""

    graph: Graph
    run: RunGraph

    def __call__(self, *inputs: Any) -> Answer:
        graph = self.graph
        found = self.run(store_inputs(graph, arrange_inputs(graph, inputs)))
        return arrange_outputs(graph, real_outputs(graph, [found[n] for n in graph.outputs]))

    def reset(self) -> None:
        self.run.reset()

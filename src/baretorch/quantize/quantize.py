"""Quantize a float Graph of any frontend after training: calibration data determines int8 scales for its tensors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.source import Source
from baretorch.ir.graph import CHOSEN, PERMUTED, Array, DType, Graph, InFloat, Node, Quant, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.layer import narrow_scales
from baretorch.ops.linear import Linear
from baretorch.options import Observer, Options
from baretorch.passes.order import FINAL_PASSES, run_passes
from baretorch.quantize.accuracy_warnings import ENOUGH, find_warnings, simulate_answers
from baretorch.quantize.calibrate import calibrate, odd_ranges, random_samples, seen_names
from baretorch.quantize.config import Config, apply_config, read_config, read_scales
from baretorch.quantize.groups import Groups, find_groups
from baretorch.quantize.precisions import IN_FLOAT, OF_WEIGHTS, Precision, has_float_weights, set_precisions
from baretorch.quantize.probe import probing
from baretorch.quantize.watch import OpenRunner, in_numpy, watching

MOST_NAMES, LONGEST = 8, 100  # names in an error, and their letters
RANDOM = "calibration: no calibration() or --calibration, so random data is used: scales do not fit real inputs"


@dataclass(frozen=True)
class Quantization:
    """The result of quantization. `passed` are the float graph with scales at its tensors, and the graph after each of
    the passes that follow; `float_graph` is the float graph without scales. `answers` are the model's outputs for the
    example inputs, rounded in float to the scales. `samples` are some of the calibration data, in the memory order of
    the C interface. `narrow`: weights have coarser scales, so that 32 bits are enough to requantize."""

    passed: tuple[tuple[str, Graph], ...]
    float_graph: Graph
    answers: tuple[Array, ...]
    samples: tuple[tuple[Array, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    narrow: bool = False

    @property
    def graph(self) -> Graph:
        """Return the float graph with scales at its tensors, which `to_int8` reads."""
        return self.passed[0][1]

    @property
    def int8(self) -> Graph:
        """Return the graph after all passes."""
        return self.passed[-1][1]


def need_float_model(source: Source) -> None:
    """Raise CompileError if a model is quantized already, or has several methods."""
    if source.graph.is_quantized:
        raise CompileError(
            "--int8: the model is quantized already",
            try_="leave out --int8: it compiles to int8 as it is",
        )
    if len(source.graphs) > 1:
        raise CompileError(
            "--int8: a model with several methods cannot be quantized yet",
            have=", ".join(source.graphs),
            need="one method",
            try_="a Python file for each method, whose model() does just that; or compile all of them in float",
        )


@dataclass(frozen=True)
class Preparation:
    """A float graph before it has scales. `before` is the graph before all passes, whose layers the user names; `graph`
    is the graph after the float passes, changed as the configuration says; `groups` are the tensors that need scales,
    and `kept` those that stay float because the user keeps their layers in float, each with the reason."""

    before: Graph
    graph: Graph
    config: Config
    groups: Groups
    kept: Mapping[str, str]

    def with_scales(self, scales: Mapping[str, Quant]) -> Graph:
        """Return the graph with these scales at its tensors, and layers in the precisions of the configuration."""
        tensors = {n: replace(t, quant=scales[n]) if n in scales else t for n, t in self.graph.tensors.items()}
        layers = self.config.layers.items()
        named = {name: (precision, outputs_of_layers(self.before, self.graph, [name])) for name, precision in layers}
        return set_precisions(keep_in_float(replace(self.graph, tensors=tensors), self.kept), named)

    def find_scales(self, samples: Iterable[Any], observer: Observer, runner: OpenRunner) -> Mapping[str, Quant]:
        """Return the scales that fit the samples, without a check of the accuracy. `runner` runs the graph."""
        with watching(self.graph, seen_names(self.graph, self.groups), runner) as run:
            return calibrate(self.graph, self.groups, samples, observer, run).scales


def prepare(before: Graph, graph: Graph, config: Config, keep_float: Sequence[str] = ()) -> Preparation:
    """Find the tensors that need scales. `graph` is the graph after the float passes, and `before` the one before all
    passes."""
    for name, precision in config.layers.items():
        outputs = outputs_of_layers(before, graph, [name])
        if precision in OF_WEIGHTS:
            _need_weights(before, graph, name, precision, outputs)
    graph = apply_config(graph, config)
    floats = (*keep_float, *(name for name, precision in config.layers.items() if precision in IN_FLOAT))
    kept = outputs_in_float(before, graph, floats)
    return Preparation(before, graph, config, find_groups(graph, kept), kept)


def quantize(source: Source, graph: Graph, options: Options, runner: OpenRunner = in_numpy) -> Quantization:
    """Quantize a model, of which this is the graph after the float passes, with its calibration data; without any, with
    seeded random data and a warning. `runner` runs graphs over the data."""
    samples = source.calibration
    notes = [RANDOM] if samples is None else []
    preparation = prepare(source.graph, graph, read_config(options.config), options.keep_float)
    graph, groups = preparation.graph, preparation.groups
    data = iter(random_samples(graph, source.examples) if samples is None else samples)
    first = list(islice(data, ENOUGH))
    with probing(graph, groups, runner, cuts=len(first) == ENOUGH) as probe:
        found = calibrate(graph, groups, chain(first, data), options.observer, probe)
        if found.constant:
            notes.append(f"calibration: all {found.count} samples are constant, so scales do not fit real inputs")
        if samples is not None:
            notes += odd_ranges(graph, source.examples, found.kept)
        chosen = read_scales(graph, preparation.config)
        noted = preparation.with_scales({n: _replace_scale(q, chosen.get(n)) for n, q in found.scales.items()})
        passed = _finish(noted)
        int8 = passed[-1][1]
        notes += find_warnings(noted, int8, groups, source.examples, found, probe, runner)
    answers = simulate_answers(noted, int8, source.examples)
    return Quantization(passed, graph, answers, found.kept, tuple(notes))


def _finish(noted: Graph) -> tuple[tuple[str, Graph], ...]:
    """Return a float graph with scales, and the graph after each of the passes that follow."""
    return ("quantize", noted), *run_passes(noted, FINAL_PASSES)[1:]


def _replace_scale(found: Quant, chosen: Quant | None) -> Quant:
    """Return a calibrated scale, with the numbers of a configuration if that has some. Scales of weights stay."""
    if chosen is None or found.axis is not None:
        return found
    return replace(found, scale=chosen.scale, zero_point=chosen.zero_point)


def keep_in_float(graph: Graph, kept: Mapping[str, str]) -> Graph:
    """Return a graph with scales in which the outputs that are `kept` in float have the reason. Their layers have float
    weights of their own, since weights that they share with int8 layers are rounded."""
    marked = {name: replace(graph[name], in_float=InFloat(why, chosen=True)) for name, why in kept.items()}
    tensors, nodes = {**graph.tensors, **marked}, list(graph.nodes)
    for i, node in enumerate(nodes):
        weighted = isinstance(node.op, (Linear, Conv2d)) and set(kept).intersection(node.outputs)
        if weighted and graph[node.inputs[1]].quant is not None:
            x, weight, *rest = node.inputs
            name = fresh(graph, tensors, f"{weight}_float")
            tensors[name] = replace(graph[weight], name=name, quant=None)
            nodes[i] = replace(node, inputs=(x, name, *rest))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def outputs_of_layers(before: Graph, graph: Graph, layers: Sequence[str], flag: str = "--config") -> set[str]:
    """Return the outputs of the layers that the user names, also where passes split or joined them."""
    paths = {name: before[name].origin.path for node in before.nodes for name in node.outputs}
    missing = set(layers).difference(paths, paths.values(), *(node.outputs for node in graph.nodes))
    if missing:
        known = {paths[name] or name for node in before.nodes if node.op.computes for name in node.outputs}
        raise _no_such_layer(flag, sorted(missing), sorted(known, key=_natural))
    return set().union(*(_outputs_of(before, graph, layer) for layer in layers))


def outputs_in_float(before: Graph, graph: Graph, layers: Sequence[str]) -> dict[str, str]:
    """Return the outputs of the layers that the user keeps in float, and why each of them is float."""
    outputs_of_layers(before, graph, layers, "--keep-float")
    kept: dict[str, str] = {}
    for layer in layers:
        for name in sorted(_outputs_of(before, graph, layer)):
            same = layer in (graph[name].origin.path or graph[name].holds, name, name.removesuffix(PERMUTED))
            kept[name] = CHOSEN if same else f"{layer}, which is kept in float, is part of it"
    return kept


def _outputs_of(before: Graph, graph: Graph, layer: str) -> set[str]:
    """Return the outputs of a layer. A slice that became part of the layer before it still has its own name, so only
    what a module computes counts."""
    results = [(name, node) for node in before.nodes for name in node.outputs]
    named = {name for name, node in results if node.op.computes and before[name].origin.path == layer}
    if all(before[name].origin.path != layer for name, _ in results):
        named = {layer}
    made = {
        name
        for node in graph.nodes
        for name in node.outputs
        if _names_of(graph[name]) & named or graph[name].origin.path == layer
    }
    return made or _joined_with(before, graph, named)


def _names_of(t: Tensor) -> set[str]:
    """Return the names of a tensor and of the value that it holds, before and after passes changed its order."""
    return {x for name in (t.name, t.holds) for x in (name, name.removesuffix(PERMUTED))}


def _joined_with(before: Graph, graph: Graph, names: Collection[str]) -> set[str]:
    """Return the first tensors after these that the graph still computes. Passes join several layers under the name of
    the last, such as a product and the bias after it."""
    computed = {x: n for node in graph.nodes if node.op.computes for n in node.outputs for x in _names_of(graph[n])}
    found, waiting, uses = set[str](), list(_varying(before).intersection(names)), before.uses()
    while waiting:
        after = {name for node in uses.get(waiting.pop(), ()) for name in node.outputs}
        found |= {computed[name] for name in after if name in computed}
        waiting += after.difference(computed)
    return found


def _varying(graph: Graph) -> set[str]:
    """Return the tensors that depend on the inputs or the state."""
    varying = {*graph.inputs, *(s.name for s in graph.state)}
    for node in graph.nodes:
        varying |= set(node.outputs) if varying.intersection(node.inputs) else set()
    return varying


def _need_weights(before: Graph, graph: Graph, layer: str, precision: Precision, made: set[str]) -> None:
    """Raise CompileError if a layer has no weights but is part of one that has, as a ReLU is after passes."""
    own = [node for node in before.nodes if {layer} & {x for n in node.outputs for x in (n, before[n].origin.path)}]
    values = before.of({name for node in own for name in node.inputs} - _varying(before))
    if any(t.dtype is DType.FLOAT32 and t.count > 1 for t in values):
        return
    for node in graph.nodes:
        t = graph[node.outputs[0]]
        if not made.intersection(node.outputs) or not has_float_weights(graph, node):
            continue
        if layer not in (t.name.removesuffix(PERMUTED), t.origin.path):
            raise CompileError(
                f"--config: {layer!r} = {precision.value!r}: it has no weights",
                have=", ".join(sorted({n.op.name for n in own})),
                need="a layer with weights",
                try_=f'"{t.origin.path or t.name}" = "{precision.value}", the layer that {layer} is part of',
            )


def _natural(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts layers by their numbers: 2 before 10."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", path)]
    return [(len(part) if i % 2 else -1, part) for i, part in enumerate(parts)]  # a longer number is a larger one


def _no_such_layer(flag: str, missing: Sequence[str], layers: Sequence[str]) -> CompileError:
    shown = [name[:LONGEST] for name in missing[:MOST_NAMES]]  # a file may name any number of them
    near = [close[0] for name in shown if (close := difflib.get_close_matches(name, layers, n=1))]
    more = f" and {len(missing) - MOST_NAMES} more" if len(missing) > MOST_NAMES else ""
    return CompileError(
        f"{flag} {', '.join(shown)}{more}: no such layer",
        have=", ".join(layers),
        try_=f"did you mean {', '.join(map(repr, near))}?" if near else None,
    )


def narrow_weights(graph: Graph) -> Graph:
    """Return a float graph with coarser scales of weights, so that 32 bits are enough to requantize. Each layer gets a
    weight of its own, since its scales depend on those of the layer's input and output. See docs/arithmetic.md."""
    tensors, nodes = dict(graph.tensors), list(graph.nodes)
    for i, node in enumerate(nodes):
        scales = narrow_scales(graph, node) if _of_8_bits(graph, node) else None
        if scales is not None:
            x, weight, *rest = node.inputs
            t = graph[weight]
            assert t.quant is not None
            name = fresh(graph, tensors, f"{weight}_narrow")
            quant = replace(t.quant, scale=tuple(map(float, scales)), zero_point=(0,) * len(scales), axis=0)
            tensors[name] = replace(t, name=name, quant=quant)
            nodes[i] = replace(node, inputs=(x, name, *rest))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def narrow_quantization(quantization: Quantization, examples: Sequence[Array]) -> Quantization:
    """Return the quantization with coarser scales of weights, and with its outputs for the examples."""
    passed = _finish(narrow_weights(quantization.graph))
    answers = simulate_answers(passed[0][1], passed[-1][1], examples)
    return replace(quantization, passed=passed, answers=answers, narrow=True)


def _of_8_bits(graph: Graph, node: Node) -> bool:
    """Report whether a node is a layer with weights whose input and output are int8."""
    noted = [graph[name].quant for name in (*node.inputs[:1], *node.outputs)]
    return isinstance(node.op, (Linear, Conv2d)) and all(q is not None and q.bits == 8 for q in noted)

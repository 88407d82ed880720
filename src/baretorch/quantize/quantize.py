"""Float Graph + calibration data -> the same Graph with int8 scales: post-training quantization for every frontend."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from baretorch.errors import CompileError
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array, Graph, Quant, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.options import Options
from baretorch.passes.layout import PERMUTED
from baretorch.quantize.accuracy_warnings import ENOUGH, judge
from baretorch.quantize.calibrate import calibrate, odd_ranges, random_samples
from baretorch.quantize.config import IN_FLOAT, Config, Precision, changed, read_config, scales_of, with_precisions
from baretorch.quantize.groups import Wanted, wanted
from baretorch.quantize.probe import probing
from baretorch.quantize.watch import Runner, interpreted

MOST_NAMES, LONGEST = 8, 100  # that an error tells
RANDOM = "calibration: no calibration() or --calibration, so random data is used: scales do not fit real inputs"


@dataclass(frozen=True)
class Quantization:
    """How a float model became int8. `graph` is the float graph with scales at its tensors, which `to_int8` reads;
    `float_graph` is the same without them. `answers` are the model's answers to the example inputs, rounded in float as
    the scales say. `samples` are some of the calibration data, in the memory order of the C interface. `kept_float` are
    the layers that the user leaves in float. `narrow`: weights have coarser scales, so that 32 bits are enough to
    requantize."""

    graph: Graph
    float_graph: Graph
    answers: tuple[Array, ...]
    samples: tuple[tuple[Array, ...], ...] = ()
    kept_float: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    narrow: bool = False


def need_float(source: Source) -> None:
    """CompileError if a model cannot be quantized: it is quantized already, or has several methods."""
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
class Prepared:
    """A float graph before it has scales. `before` is the graph before all passes, whose layers the user names; `graph`
    is the graph after the float passes, changed as the configuration says; `groups` are the tensors that need scales,
    and `kept` those that stay float, because the user keeps the layers `kept_float` in float."""

    before: Graph
    graph: Graph
    config: Config
    groups: Wanted
    kept: frozenset[str]
    kept_float: tuple[str, ...]

    def with_scales(self, scales: Mapping[str, Quant]) -> Graph:
        """Return the graph with these scales at its tensors, and layers in the precisions of the configuration."""
        return with_scales(self.before, self.graph, scales, self.config.layers, self.kept)


def prepare(source: Source, graph: Graph, options: Options) -> Prepared:
    """Find the tensors that need scales in a model, of which this is the graph after the float passes."""
    before = source.graph
    config = read_config(options.config) if options.config else Config()
    for name in config.layers:
        made_by(before, graph, [name])
    graph = changed(graph, config)
    floats = (*options.keep_float, *(name for name, precision in config.layers.items() if precision in IN_FLOAT))
    kept = frozenset(made_by(before, graph, floats, "--keep-float"))
    return Prepared(before, graph, config, wanted(graph, kept), kept, floats)


def quantize(source: Source, graph: Graph, options: Options, runner: Runner = interpreted) -> Quantization:
    """Quantize a model, of which this is the graph after the float passes, with its calibration data; without any, with
    seeded random data and a warning. `runner` runs graphs over the data."""
    samples = source.calibration
    notes = [RANDOM] if samples is None else []
    prepared = prepare(source, graph, options)
    graph, groups = prepared.graph, prepared.groups
    data = iter(random_samples(graph, source.examples) if samples is None else samples)
    first = list(islice(data, ENOUGH))
    with probing(graph, groups, runner, cuts=len(first) == ENOUGH) as probe:
        found = calibrate(graph, groups, chain(first, data), options.observer, probe)
        if found.constant:
            notes.append(f"calibration: all {found.count} samples are constant, so scales do not fit real inputs")
        if samples is not None:
            notes += odd_ranges(graph, source.examples, found.kept)
        chosen = scales_of(graph, prepared.config)
        noted = prepared.with_scales({n: _replace_scale(q, chosen.get(n)) for n, q in found.scales.items()})
        health = judge(noted, groups, source.examples, found, probe, runner)
    return Quantization(noted, graph, health.answers, found.kept, prepared.kept_float, (*notes, *health.warnings))


def with_scales(
    before: Graph,
    graph: Graph,
    scales: Mapping[str, Quant],
    layers: Mapping[str, Precision],
    kept: Collection[str] = (),
) -> Graph:
    """Return the graph with these scales at its tensors, and layers in their precisions. What layers make that stay
    float is `kept`; users name layers as they are in the graph `before` all passes."""
    tensors = {n: replace(t, quant=scales[n]) if n in scales else t for n, t in graph.tensors.items()}
    named = {name: (precision, made_by(before, graph, [name])) for name, precision in layers.items()}
    return with_precisions(in_float(replace(graph, tensors=tensors), kept), named)


def _replace_scale(found: Quant, chosen: Quant | None) -> Quant:
    """Return a calibrated scale, with the numbers of a configuration if that has some. Scales of weights stay."""
    if chosen is None or found.axis is not None:
        return found
    return replace(found, scale=chosen.scale, zero_point=chosen.zero_point)


def in_float(graph: Graph, kept: Collection[str]) -> Graph:
    """The notes of a quantized graph, in which layers that make what is `kept` have weights of their own, without
    notes, where others have the same in int8: with notes all around they would be int8, too."""
    tensors, nodes = dict(graph.tensors), list(graph.nodes)
    for i, node in enumerate(nodes):
        weighted = isinstance(node.op, (Linear, Conv2d)) and set(kept).intersection(node.outputs)
        if weighted and graph[node.inputs[1]].quant is not None:
            x, weight, *rest = node.inputs
            name = fresh(graph, tensors, f"{weight}_float")
            tensors[name] = replace(graph[weight], name=name, quant=None)
            nodes[i] = replace(node, inputs=(x, name, *rest))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def made_by(before: Graph, graph: Graph, layers: Sequence[str], flag: str = "--config") -> set[str]:
    """What the layers make that the user names, also where they became part of others."""
    named = {name for name, t in before.tensors.items() if {name, t.origin.path} & set(layers)}
    made = {name for node in before.nodes for name in node.outputs}
    known = {t.origin.path for n, t in before.tensors.items() if n in made and t.origin.path}
    missing = set(layers) - {x for n in named & made for x in (n, before[n].origin.path)}
    if missing:
        raise _no_such_layer(flag, sorted(missing), sorted(known, key=_natural))
    return {
        name
        for node in graph.nodes
        for name in node.outputs
        if {name, graph[name].holds, name.removesuffix(PERMUTED)} & named or graph[name].origin.path in layers
    }


def _natural(path: str) -> list[tuple[int, str]]:
    """Sorts layers as people count them: 2 before 10."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", path)]
    return [(len(part) if i % 2 else -1, part) for i, part in enumerate(parts)]  # a longer number is a larger one


def _no_such_layer(flag: str, missing: Sequence[str], layers: Sequence[str]) -> CompileError:
    told = [name[:LONGEST] for name in missing[:MOST_NAMES]]  # a file may name any number of them
    near = [close[0] for name in told if (close := difflib.get_close_matches(name, layers, n=1))]
    more = f" and {len(missing) - MOST_NAMES} more" if len(missing) > MOST_NAMES else ""
    return CompileError(
        f"{flag} {', '.join(told)}{more}: no such layer",
        have=", ".join(layers),
        try_=f"did you mean {', '.join(map(repr, near))}?" if near else None,
    )

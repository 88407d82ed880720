"""Source -> the same in int8: post-training quantization on the Graph, for every frontend."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.checked import check_passes
from baretorch.frontends.source import ODD_INPUTS, ODD_INT8, Int8, Source
from baretorch.ir.equivalence import says_int8
from baretorch.ir.graph import Graph, Quant, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.options import Requant
from baretorch.passes.layout import PERMUTED
from baretorch.passes.order import FLOAT, stages
from baretorch.quantize.accuracy_warnings import judged
from baretorch.quantize.calibrate import calibrated, odd_ranges, random_samples
from baretorch.quantize.config import IN_FLOAT, Config, Precision, changed, read_config, scales_of, with_precisions
from baretorch.quantize.groups import wanted
from baretorch.quantize.narrow_requant import with_narrow
from baretorch.quantize.watch import Runner, interpreted

MOST_NAMES, LONGEST = 8, 100  # that an error tells
RANDOM = "calibration: no calibration() or --calibration, so random data is used: scales do not fit real inputs"


def quantized(source: Source, int8: Int8, samples: Iterable[Any] | None, runner: Runner = interpreted) -> Source:
    """The same model in int8, by post-training quantization with these calibration samples; None: seeded random data,
    with a warning. The Graph is that after the float passes, with scales noted, which the passes that follow make true.
    `expected` stays what the model gives in float, `quantized` is what the notes mean: rounding, simulated in float."""
    if source.quantized is not None or says_int8(source.graph):
        if int8.unless_done and not int8.config and int8.requant is Requant.WIDE:
            return source
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
    before = source.graph
    made = stages(before, FLOAT)
    check_passes(source, source.method, made)
    graph = made[-1][1]
    notes = [RANDOM] if samples is None else []
    config = read_config(int8.config) if int8.config else Config()
    layers = {name: (precision, made_by(before, graph, [name])) for name, precision in config.layers.items()}
    floats = (*int8.keep_float, *(name for name, precision in config.layers.items() if precision in IN_FLOAT))
    rounded = Precision.FLOAT16 in config.layers.values()
    other = bool(config.removed or config.weights)  # than the one that was read: only itself can be asked
    graph = changed(graph, config)
    kept = made_by(before, graph, floats, "--keep-float")
    chosen = wanted(graph, kept)
    data = random_samples(graph, source.examples) if samples is None else samples
    calibration = calibrated(graph, chosen, data, int8.observer, runner)
    if calibration.constant:
        notes.append(f"calibration: all {calibration.count} samples are constant, so scales do not fit real inputs")
    if samples is not None:
        notes += odd_ranges(graph, source.examples, calibration.kept)
    told = scales_of(graph, config)
    scales = {n: _as_told(q, told.get(n)) for n, q in calibration.scales.items()}
    noted = replace(
        graph, tensors={n: replace(t, quant=scales[n]) if n in scales else t for n, t in graph.tensors.items()}
    )
    noted = with_precisions(in_float(noted, kept), layers)
    if int8.requant is Requant.NARROW:
        noted = with_narrow(noted)
    health = judged(noted, chosen, source.examples, calibration.kept, calibration.count, runner)
    return replace(
        source,
        graphs={source.method: noted},
        references={} if other or rounded else source.references,
        float_graphs={source.method: graph} if other else source.graphs,
        quantized=health.answers,
        kept_float=floats,
        samples=calibration.kept,
        warnings=(*(ODD_INT8 if w == ODD_INPUTS else w for w in source.warnings), *notes, *health.warnings),
    )


def _as_told(found: Quant, told: Quant | None) -> Quant:
    """What was measured here, with the numbers of a configuration."""
    if told is None or found.axis is not None:
        return found
    return replace(found, scale=told.scale, zero_point=told.zero_point)


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

"""Measure the accuracy of narrow requantization: python benchmarks/requant.py [ZOO MODEL]…

It prints the signal to noise ratio of each model's outputs in int8 against float, over a part of its calibration data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import as_real, store_inputs
from baretorch.machines.host_program import on_host
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.narrow_requant import narrow_form
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.options import Options
from baretorch.pipeline import LoweredModel, lower_file
from baretorch.quantize.accuracy import sqnr_db

ZOO = Path(__file__).parent.parent / "zoo"


def outputs(graph: Graph, samples: tuple[tuple[Array, ...], ...]) -> Iterator[list[Array]]:
    """Yield the outputs for each sample, as real numbers; state persists from one sample to the next."""
    with on_host(graph) as run:
        for sample in samples:
            values = run(store_inputs(graph, sample))
            yield [as_real(graph[name], values[name]) for name in graph.outputs]


def signal_to_noise(model: LoweredModel) -> float | None:
    signal = error = 0.0
    assert model.quantization is not None
    samples = model.quantization.samples
    exact = outputs(model.quantization.float_graph, samples)
    for want, have in zip(exact, outputs(model.graph, samples), strict=True):
        for w, h in zip(want, have, strict=True):
            signal += float(np.square(w, dtype=np.float64).sum())
            error += float(np.square(w.astype(np.float64) - h).sum())
    return sqnr_db(signal, error)


def narrow_layers(graph: Graph) -> tuple[int, int]:
    """Return the number of narrow layers with weights, and of all layers with weights."""
    layers = [n for n in graph.nodes if isinstance(n.op, (QConv2d, QLinear))]
    calls = [Call(n.op, graph.of(n.inputs), graph.of(n.outputs)) for n in layers]
    return sum(narrow_form(call) is not None for call in calls), len(layers)


def row(model: Path) -> str:
    wide = lower_file(str(model), Options(int8=True))
    few, all_ = narrow_layers(wide.narrow.graph)
    texts = ["no noise" if db is None else f"{db:.1f}" for db in map(signal_to_noise, (wide, wide.narrow))]
    return f"| {model.stem} | {few} of {all_} | {texts[0]} | {texts[1]} |"


def main(names: list[str]) -> None:
    print("| model | narrow layers | wide, dB | narrow, dB |\n|---|--:|--:|--:|")
    for model in sorted(ZOO.glob("*.py")):
        if model.stem != "common" and (not names or model.stem in names):
            try:
                print(row(model), flush=True)
            except CompileError as error:
                print(f"{model.stem}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])

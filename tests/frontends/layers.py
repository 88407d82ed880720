"""A toy frontend: a `.layers` file is a JSON list of layers. It shows what a new format takes: this file, and a row in
KINDS. `round` stands where a value is int8; a weight with a `scale` is so, too, one number per row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.source import LoadRequest, Source, random_inputs
from baretorch.ir.graph import Array, Builder, DType, Origin, Quant
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Clamp
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.passes.equivalence import Reference

NCHW = (0, 3, 1, 2)
ROWS: Mapping[str, Callable[[Builder, str, Any], str]] = {
    "image": lambda b, x, shape: b.add(Permute(NCHW), b.input("image", tuple(shape), DType.FLOAT32)),
    "flatten": lambda b, x, _: b.add(Reshape((1, b.tensors[x].count)), x),
    "linear": lambda b, x, how: b.add(Linear(), x, _weight(b, **how)),
    "relu": lambda b, x, _: b.add(Clamp(0.0, np.inf), x),
    "round": lambda b, x, scale: b.add(Dequantize(scale, 0), b.add(Quantize(scale, 0), x)),
}
MEANING: Mapping[str, Callable[[Array, Any], Array]] = {  # the same in NumPy: the model that can be request
    "image": lambda x, _: x,
    "flatten": lambda x, _: x.reshape(1, -1),
    "linear": lambda x, how: x @ (np.array(how["rows"]).T * np.array(how.get("scale", 1.0))),
    "relu": lambda x, _: np.maximum(x, 0),
    "round": lambda x, _: x,
}


def _weight(b: Builder, rows: list[list[float]], scale: list[float] | None = None) -> str:
    quant = Quant(tuple(scale), (0,) * len(scale), 0) if scale else None
    real = np.array(rows) * np.array(scale or [1.0])[:, None]
    return b.const("weight", real.astype(np.float32), quant)


def load_layers(request: LoadRequest) -> Source:
    layers = [(kind, how) for layer in json.loads(request.file.read_text()) for kind, how in layer.items()]
    if unknown := [kind for kind, _ in layers if kind not in ROWS]:
        raise CompileError(f"{request.file}: {unknown[0]!r} is no layer", need=", ".join(ROWS))
    b, x = Builder(request.name), ""
    for i, (kind, how) in enumerate(layers):
        b.origin = Origin(f"{i}.{kind}")
        x = ROWS[kind](b, x, how)
    graph = verify(replace(b.graph(["image"], [x]), input_orders=((0, 2, 3, 1),)))
    examples = random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs))
    (port,) = graph.takes()
    y = port.from_memory(examples[0])
    for kind, how in layers:
        y = MEANING[kind](y, how)
    answers = (y.astype(np.float32),)
    reference = Reference(answers, 1, lambda seed: answers, examples)
    return Source(
        request.name, {"forward": graph}, examples, answers, answers, references={"forward": reference}, library="NumPy"
    )

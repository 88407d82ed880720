"""Small models through quantization, and what the tests ask of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.options import Observer
from baretorch.passes.to_int8 import explain_float, float_layers
from tests.models import int8_model


def both(module: nn.Module, *inputs: torch.Tensor, samples: int = 8) -> tuple[Source, Graph]:
    """The model quantized with random data like its inputs, and its int8 graph."""
    generator = torch.Generator().manual_seed(1)
    data: list[tuple[Any, ...]] = [inputs]
    data += [tuple(torch.randn(x.shape, generator=generator) for x in inputs) for _ in range(samples)]
    model = int8_model(from_module(module.eval(), inputs, "m"), data, observer=Observer.MINMAX)
    return model.source, model.graph


def int8_db(module: nn.Module, *inputs: torch.Tensor, may_be_float: tuple[str, ...] = ()) -> float:
    """Signal to noise of the int8 model's answer, of which nothing else may be float."""
    source, graph = both(module, *inputs)
    left = [layer for layer in float_layers(graph) if layer.split()[0] not in may_be_float]
    assert not left, (left, explain_float(graph))
    return decibels(source, graph)


def decibels(source: Source, graph: Graph) -> float:
    made = real_outputs(graph, tuple(interpret(graph, store_inputs(graph, source.examples)).values()))
    assert source.expected is not None
    return min(sqnr(have, want) for have, want in zip(made, source.expected, strict=True))


def sqnr(have: Array, want: Array) -> float:
    noise = float(np.sum((have.astype(np.float64) - want) ** 2))
    return float(10 * np.log10(np.sum(want.astype(np.float64) ** 2) / noise)) if noise else 200.0

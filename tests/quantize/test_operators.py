"""Every operator that can be int8 is: as a model of its own it has no float layer, and differs from pt2e's arithmetic by
a step at most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from baretorch import pipeline
from baretorch.emulators.run import real, stored
from baretorch.frontends import Int8, Source, from_module, quantized
from baretorch.frontends.aten import to_graph
from baretorch.ir import Graph, interpret
from baretorch.ops.quantize import Dequantize
from baretorch.passes.to_int8 import float_layers, why_float
from tests.models import seeded

Tensors = tuple[torch.Tensor, ...]


class Function(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


class Rows(nn.Module):
    """An embedding, the only model here that takes integers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.table((x.abs() * 4).long().clamp(0, 19)))


def draw(*shapes: tuple[int, ...]) -> list[Tensors]:
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(s, generator=generator) for s in shapes) for _ in range(12)]


def int8(module: nn.Module, *shapes: tuple[int, ...]) -> tuple[Source, Graph]:
    samples = draw(*shapes)
    source = quantized(from_module(seeded(module), samples[0], "m"), Int8(observer="minmax"), samples)
    return source, pipeline.optimized(to_graph(source.program))


def steps(source: Source, graph: Graph) -> float:
    """The largest difference from pt2e's answer, in steps of the output's scale."""
    assert source.quantized is not None
    (name,), (want,) = graph.outputs, source.quantized
    got = interpret(graph, stored(graph, source.examples))[name]
    made = graph.producer()[name]
    assert isinstance(made.op, Dequantize), "the output is int8"
    assert real(graph, (got,))[0].shape == want.shape
    return float(np.abs(got - want).max()) / made.op.scale


def check(module: nn.Module, *shapes: tuple[int, ...]) -> None:
    source, graph = int8(module, *shapes)
    assert not float_layers(graph), why_float(graph)
    assert steps(source, graph) <= 1.001


IMAGE, WIDE, TALL = (1, 4, 6, 8), (1, 3, 16), (2, 5, 12)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Linear(12, 7), TALL),
        (nn.Conv1d(3, 6, 3, padding=1), WIDE),
        (nn.Conv2d(4, 6, 3, padding=1, dilation=2), IMAGE),
        (nn.Conv2d(4, 4, 3, groups=4), IMAGE),
        (nn.Conv2d(4, 6, 3, groups=2, stride=2), IMAGE),
        (nn.ConvTranspose1d(3, 5, 4, stride=2, padding=1), WIDE),
        (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), IMAGE),
        (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), IMAGE),
        (nn.ConvTranspose2d(4, 4, 2, stride=2, groups=4, bias=False), IMAGE),
        (nn.Sequential(nn.ConvTranspose2d(4, 4, 2, stride=2), nn.ReLU()), IMAGE),
    ],
    ids=str,
)
def test_layers(module: nn.Module, shape: tuple[int, ...]) -> None:
    check(module, shape)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.LayerNorm(12), TALL),
        (nn.LayerNorm((5, 12)), TALL),
        (nn.LayerNorm(12, elementwise_affine=False), TALL),
        (nn.RMSNorm(12), TALL),
        (nn.GroupNorm(2, 4), IMAGE),
        (nn.InstanceNorm2d(4, affine=True), IMAGE),
        (nn.BatchNorm2d(4), IMAGE),
        (nn.Softmax(-1), TALL),
        (nn.Softmax(1), IMAGE),
        (nn.LogSoftmax(-1), TALL),
    ],
    ids=str,
)
def test_norms_and_softmax(module: nn.Module, shape: tuple[int, ...]) -> None:
    check(module, shape)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.MaxPool1d(2), WIDE),
        (nn.MaxPool2d(3, 2, 1), IMAGE),
        (nn.AvgPool1d(4), WIDE),
        (nn.AvgPool2d(2), IMAGE),
        (nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
        (nn.AvgPool2d(3, 2, ceil_mode=True), IMAGE),
        (nn.AdaptiveAvgPool1d(4), WIDE),
        (nn.AdaptiveAvgPool2d(1), IMAGE),
        (nn.AdaptiveAvgPool2d((4, 5)), IMAGE),
        (nn.AdaptiveMaxPool1d(4), WIDE),
        (nn.AdaptiveMaxPool2d((4, 5)), IMAGE),
    ],
    ids=str,
)
def test_pools(module: nn.Module, shape: tuple[int, ...]) -> None:
    check(module, shape)


@pytest.mark.parametrize(
    "module",
    [
        *(nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-0.5, 0.7), nn.LeakyReLU(0.1), nn.PReLU(), nn.ELU(), nn.SELU(), nn.CELU()),
        *(nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(), nn.Sigmoid(), nn.Tanh()),
        *(nn.Softplus(), nn.LogSigmoid(), nn.Hardshrink(), nn.Softshrink(), nn.Threshold(0.1, 0.2), nn.Softsign()),
        nn.Tanhshrink(),
    ],
    ids=str,
)
def test_activations(module: nn.Module) -> None:
    check(module, TALL)


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "sqrt": lambda x: torch.sqrt(x.abs() + 0.1),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.5),
    "log": lambda x: torch.log(x.abs() + 0.5),
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "sin": torch.sin,
    "erf": torch.erf,
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 1),
    "half": lambda x: x * 0.5 + 1,
    "less": lambda x: 2 - x,
    "divided": lambda x: x / 3,
    "power": lambda x: x**2,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "mean": lambda x: x.mean(-1),
    "sum": lambda x: x.sum(1, keepdim=True),
    "amax": lambda x: x.amax(-1),
    "flip": lambda x: x.flip(-1),
    "roll": lambda x: x.roll(3, -1),
    "repeat": lambda x: x.repeat(1, 2, 2),
    "interleave": lambda x: x.repeat_interleave(2, -1),
    "pad": lambda x: F.pad(x, (2, 3), value=0.5),
    "reflect": lambda x: F.pad(x, (2, 3), mode="reflect"),
    "replicate": lambda x: F.pad(x, (2, 3), mode="replicate"),
    "circular": lambda x: F.pad(x, (2, 3), mode="circular"),
    "slice": lambda x: x[:, 1:, ::2],
    "select": lambda x: x[:, -1],
    "split": lambda x: torch.cat(tuple(reversed(x.split(4, -1))), 1),
    "chunk and gate": lambda x: (lambda a, b: a * torch.sigmoid(b))(*x.chunk(2, -1)),
    "glu": lambda x: F.glu(x, -1),
    "unbind": lambda x: (lambda *parts: parts[0] + parts[1])(*x.unbind(0)),
    "select rows": lambda x: x.index_select(1, torch.tensor([3, 0, 0])),
    "gather": lambda x: x.gather(2, torch.tensor([[[3], [0], [1], [2], [3]]] * 2)),
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "minimum": lambda x: torch.minimum(x, torch.tanh(x)),
    "maximum": lambda x: torch.maximum(x, x.flip(-1)),
    "cat": lambda x: torch.cat([x, torch.sigmoid(x), 3 * x], 1),
    "stack": lambda x: torch.stack([x, 2 * x]),
    "residual": lambda x: torch.relu(x + torch.tanh(x)),
    "difference": lambda x: x.flip(-1) - x,
    "outer": lambda x: x.unsqueeze(-1) * x.unsqueeze(-2),
    "self product": lambda x: x @ x.transpose(-1, -2),
    "bmm": lambda x: torch.relu(torch.bmm(x.transpose(1, 2), x)),
    "linear upsample": lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"),
    "nearest upsample": lambda x: F.interpolate(x, scale_factor=2.0),
    "attention": lambda x: F.scaled_dot_product_attention(x, x.flip(1), x),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x.flip(2), is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x, x, x, torch.eye(5).bool().logical_not()),
    "biased attention": lambda x: F.scaled_dot_product_attention(x, x, x, torch.linspace(-2, 2, 25).reshape(5, 5)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(Function(FUNCTIONS[name]), TALL)


IMAGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bilinear with corners": lambda x: F.interpolate(x, size=(9, 11), mode="bilinear", align_corners=True),
    "pixel shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel shuffle": lambda x: F.channel_shuffle(x, 2),
    "global mean": lambda x: x.mean((2, 3)),
    "mean of rows and channels": lambda x: x.mean((1, 3)),
    "gate": lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str) -> None:
    check(Function(IMAGES[name]), IMAGE)

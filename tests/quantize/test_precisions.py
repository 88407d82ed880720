"""Layers of 16 bits side by side: nothing between them is rounded to 8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.frontends import from_module
from baretorch.ir.graph import DType, Graph, interpret
from baretorch.passes.to_int8 import float_layers
from tests.models import int8_model


class Residual(nn.Module):
    """One of each that has an int16 form."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.max, self.avg = nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(2)
        self.head, self.softmax = nn.Linear(4, 5), nn.Softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        both = torch.relu(self.second(first) + first)
        return self.softmax(self.head(self.avg(self.max(both)).mean((2, 3))))


LAYERS = ("first", "second", "add", "max", "avg", "mean", "head", "softmax")


def error(graph: Graph, net: nn.Module, samples: list[tuple[torch.Tensor, ...]]) -> float:
    """The largest."""
    found = [next(iter(interpret(graph, [x.numpy() for x in sample]).values())) for sample in samples]
    wanted = [net(*sample).detach().numpy() for sample in samples]
    return max(float(np.abs(a - b).max()) for a, b in zip(found, wanted, strict=True))


def test_a_network_of_16_bits_is_more_exact(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, samples = Residual().eval(), [(torch.randn(1, 2, 16, 16),) for _ in range(4)]
    errors = []
    for layers in ((), LAYERS):
        config = tmp_path / "c.toml"
        config.write_text("[layers]\n" + "".join(f'{name} = "int16"\n' for name in layers))
        graph = int8_model(from_module(net, samples[0], "m"), samples, config=str(config)).graph
        assert float_layers(graph) == []
        errors.append(error(graph, net, samples))
    ops = [n.op.name for n in graph.nodes if n.op.name not in ("permute", "reshape")]
    between = [
        "qconv2d16",
        "qconv2d16",
        "qadd16",
        "qmax_pool16",
        "qavg_pool16",
        "qavg_pool16",
        "qconv2d16",
        "qsoftmax16",
    ]
    assert ops == ["quantize16", *between, "dequantize16"]
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("layer", ["second", "add", "max", "avg", "softmax"])
def test_any_of_them_alone(layer: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, samples = Residual().eval(), [(torch.randn(1, 2, 16, 16),) for _ in range(4)]
    config = tmp_path / "c.toml"
    config.write_text(f'[layers]\n{layer} = "int16"\n')
    graph = int8_model(from_module(net, samples[0], "m"), samples, config=str(config)).graph
    names = [n.op.name for n in graph.nodes]
    assert float_layers(graph) == [] and sum(name.endswith("16") for name in names) <= 2
    assert error(graph, net, samples) < 0.01


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 8, batch_first=True), nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


def test_recurrent_layers_of_16_bits_are_more_exact(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, samples = Recurrent().eval(), [(torch.randn(1, 5, 6),) for _ in range(4)]
    errors = []
    for layers in ((), ("lstm", "gru", "head")):
        config = tmp_path / "c.toml"
        config.write_text("[layers]\n" + "".join(f'{name} = "int16"\n' for name in layers))
        graph = int8_model(from_module(net, samples[0], "m"), samples, config=str(config)).graph
        assert float_layers(graph) == []
        errors.append(error(graph, net, samples))
    read = {n.op.name: graph[n.inputs[0]].dtype for n in graph.nodes}
    assert read["qlstm"] is read["qgru"] is DType.INT16 and "narrow" not in read
    assert errors[1] < errors[0] * 2 / 3, "what is left comes from weights of 8 bits, which both have"

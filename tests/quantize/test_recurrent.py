"""LSTM, GRU and RNN in int8: no float layers, and how near they are to float32."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.frontends import from_module
from baretorch.frontends.model_file import load_model_file
from baretorch.ir.graph import Graph, interpret
from baretorch.ops.int8.gates import sigmoid, tanh
from baretorch.passes.to_int8 import explain_float, float_layers
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_file, int8_model

ZOO = Path(__file__).parents[2] / "zoo"


def noise(model: LoweredModel, samples: Iterable[tuple[torch.Tensor, ...]]) -> tuple[Graph, float]:
    """The int8 graph, and its signal to noise ratio against the float graph in dB, over calls one after the other."""
    assert model.quantization is not None
    int8, real = model.graph, model.quantization.float_graph
    memory: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    signal = error = 0.0
    for sample in samples:
        arrays = [x.numpy() for x in sample]
        got, want = (interpret(g, arrays, memory=m) for g, m in zip((int8, real), memory, strict=True))
        for a, b in zip(got.values(), want.values(), strict=True):
            signal += float((b.astype(np.float64) ** 2).sum())
            error += float(((a.astype(np.float64) - b) ** 2).sum())
    return int8, 10 * np.log10(signal / error)


@pytest.mark.parametrize(("name", "least"), [("lstm", 38), ("gru", 50), ("streaming_gru", 44)])
def test_the_zoo_has_no_float_layers_and_little_noise(name: str, least: float) -> None:
    _, _, samples = load_model_file(ZOO / f"{name}.py")
    assert samples is not None
    graph, ratio = noise(int8_file(str(ZOO / f"{name}.py")), list(samples)[:8])
    assert float_layers(graph) == []
    assert ratio > least


class Layers(nn.Module):
    """A recurrent layer and all that it gives."""

    def __init__(self, kind: type[nn.RNNBase], given: bool = False, **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 8, **options)
        self.given = given

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        begin = (state if len(state) > 1 else state[0],) if self.given else ()
        y, ends = self.layer(x, *begin)
        return (y, *(ends if isinstance(ends, tuple) else (ends,)))


def tensors(*shapes: tuple[int, ...]) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(s, generator=generator) for s in shapes) for _ in range(8)]


def int8_of(module: nn.Module, samples: list[tuple[torch.Tensor, ...]]) -> LoweredModel:
    return int8_model(from_module(module.eval(), samples[0], "m"), samples)


@pytest.mark.parametrize(
    ("module", "shapes"),
    [
        (lambda: Layers(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), [(2, 5, 6)]),
        (lambda: Layers(nn.GRU, num_layers=2), [(5, 1, 6)]),
        (lambda: Layers(nn.RNN, num_layers=2, bidirectional=True, batch_first=True), [(2, 5, 6)]),
        (lambda: Layers(nn.RNN, given=True), [(5, 1, 6), (1, 1, 8)]),
        (lambda: Layers(nn.LSTM, given=True), [(5, 1, 6), (1, 1, 8), (1, 1, 8)]),
        (lambda: Layers(nn.GRU, given=True, bias=False), [(5, 1, 6), (1, 1, 8)]),
    ],
    ids=[
        "lstm, all of it",
        "gru of two layers",
        "rnn, all of it",
        "rnn from a given state",
        "lstm from given states",
        "gru from a given state",
    ],
)
def test_layers_directions_and_states(module: Any, shapes: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    samples = tensors(*shapes)
    graph, ratio = noise(int8_of(module(), samples), samples)
    assert float_layers(graph) == []
    assert ratio > 28


def test_cells_are_layers_of_one_step() -> None:
    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru = nn.LSTMCell(6, 8), nn.GRUCell(8, 8)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
            h, c = self.lstm(x, (h, c))
            return self.gru(h, c), c

    torch.manual_seed(0)
    samples = tensors((1, 6), (1, 8), (1, 8))
    graph, ratio = noise(int8_of(Cells(), samples), samples)
    assert float_layers(graph) == [] and ratio > 28


class Streaming(nn.Module):
    """An LSTM that is fed step by step and remembers both its states."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(6, 8), nn.Linear(8, 3)
        self.register_buffer("h", torch.randn(1, 8))
        self.register_buffer("c", torch.randn(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, c = self.cell(x, (self.h, self.c))
        self.h.copy_(h)
        self.c.copy_(c)
        return self.head(h)


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_the_chip_remembers_what_the_graph_does(board: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    samples = tensors((1, 6))
    model = int8_of(Streaming(), samples)
    graph, ratio = noise(model, samples)
    assert float_layers(graph) == [] and ratio > 28
    compiled = compile_model(model, load_board(board))
    run = pipeline.run_image(compiled, pipeline.build_image(compiled, tmp_path))
    memory: dict[str, Any] = {}
    for got in (run.first, run.outputs):
        want = tuple(interpret(compiled.graph, model.source.examples, memory=memory).values())
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), "bit for bit"
    assert not np.array_equal(run.first[0], run.outputs[0])


class Learned(nn.Module):
    """A layer or a cell whose initial states are constants, or for an LSTM one of them."""

    def __init__(self, kind: type[nn.Module], variable: int | None = None) -> None:
        super().__init__()
        self.layer, self.head = kind(6, 8), nn.Linear(8, 3)
        self.start = nn.Parameter(torch.randn(2, 1, 8) / 2)
        self.lstm, self.variable = kind in (nn.LSTM, nn.LSTMCell), variable

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> torch.Tensor:
        begin = [self.start[i : i + 1] if x.dim() == 3 else self.start[i] for i in range(2)]
        if self.variable is not None:
            begin[self.variable] = state[0]
        y = self.layer(x, tuple(begin) if self.lstm else begin[0])
        return self.head(y[0] if self.lstm or x.dim() == 3 else y)


@pytest.mark.parametrize("board", ["host", "mps2-an386", "mps2-an385-v6m", "mps3-an547", "virt-rv32"])
@pytest.mark.parametrize(
    ("kind", "shapes", "variable"),
    [
        (nn.RNN, [(5, 1, 6)], None),
        (nn.GRU, [(5, 1, 6)], None),
        (nn.LSTM, [(5, 1, 6)], None),
        (nn.LSTM, [(5, 1, 6), (1, 1, 8)], 0),
        (nn.LSTM, [(5, 1, 6), (1, 1, 8)], 1),
        (nn.RNNCell, [(1, 6)], None),
        (nn.GRUCell, [(1, 6)], None),
        (nn.LSTMCell, [(1, 6)], None),
    ],
)
def test_initial_states_may_be_constants(
    kind: type[nn.Module], shapes: list[tuple[int, ...]], variable: int | None, board: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    samples = tensors(*shapes)
    model = int8_of(Learned(kind, variable), samples)
    graph, ratio = noise(model, samples)
    assert float_layers(graph) == [] and ratio > 28
    compiled = compile_model(model, load_board(board))
    run = pipeline.run_image(compiled, pipeline.build_image(compiled, tmp_path))
    want = interpret(compiled.graph, model.source.examples).values()
    assert all(np.array_equal(a, b) for a, b in zip(run.first, want, strict=True)), "bit for bit"


def test_an_rnn_with_relu_stays_float_with_a_reason() -> None:
    samples = tensors((5, 1, 6))
    graph = int8_of(nn.Sequential(nn.Linear(6, 6), Layers(nn.RNN, nonlinearity="relu")), samples).graph
    assert [layer.split()[0] for layer in float_layers(graph)] == ["rnn"]
    assert [why for _, why in explain_float(graph)] == ["its hidden state has no limit"]


def test_sigmoid_and_tanh_are_near() -> None:
    v = np.arange(-32768, 32768)
    real = v / 4096
    assert np.abs(sigmoid(v) / 2**13 - 1 / (1 + np.exp(-real))).max() < 2**-13
    assert np.abs(tanh(v) / 2**13 - np.tanh(real / 2)).max() < 2**-12
    assert not tanh(np.zeros(1, int)).any()

"""A layer keeps its name for the user, also where passes split it or put several layers together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Node, Origin
from baretorch.ops.elementwise import Add
from baretorch.ops.linear import Linear
from baretorch.passes.order import FLOAT_PASSES, run_passes
from baretorch.passes.to_int8 import explain_float
from baretorch.pipeline import LoweredModel
from baretorch.quantize.accuracy import compare_layers
from baretorch.quantize.quantize import outputs_of_layers
from tests.models import int8_model


class Halves(nn.Module):
    """A layer whose result is read in two parts, of which one is a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(64, 8), nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, z = self.a(x), self.b(x)
        return y[:, :4] * torch.sigmoid(y[:, 4:]) + z[:, :4] - z[:, 4:]


class Views(nn.Module):
    """A layer that is a function, whose result is reshaped before it is split."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(12, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = nn.functional.linear(x, self.weight).view(1, 5, 3, 4).unbind(2)
        return q * k + v


def lowered(net: nn.Module, shape: tuple[int, ...], layers: dict[str, str], folder: Path) -> LoweredModel:
    file = folder / "layers.toml"
    file.write_text("[layers]\n" + "".join(f'"{layer}" = "{precision}"\n' for layer, precision in layers.items()))
    torch.manual_seed(0)
    samples = [(torch.randn(shape),) for _ in range(8)]
    return int8_model(from_module(net.eval(), samples[0], "net"), samples, config=str(file))


def parts(model: LoweredModel, layer: str) -> list[Node]:
    """Return the operators with weights that a layer became."""
    graph = model.graph
    weighted = [n for n in graph.nodes if any(t.data is not None for t in graph.of(n.inputs))]
    return [n for n in weighted if graph[n.outputs[0]].origin.path == layer]


@pytest.mark.parametrize(
    ("precision", "op"),
    [
        ("int8", "qlinear"),
        ("float", "linear"),
        ("float16", "linear"),
        ("int4", "qlinear"),
        ("int4g32", "qlinear"),
        ("int16", "qconv2d16"),
    ],
)
def test_all_parts_of_a_layer_have_its_precision(precision: str, op: str, tmp_path: Path) -> None:
    model = lowered(Halves(), (1, 64), {"a": precision}, tmp_path)
    a, b = parts(model, "a"), parts(model, "b")
    assert [n.op.name for n in a] == [op] * 2 and [n.op.name for n in b] == ["qlinear"] * 2
    bits = {q.bits for n in a if (q := model.graph[n.inputs[1]].quant) is not None}
    assert bits == ({4} if "int4" in precision else {8} if "int" in precision else set())
    assert all(getattr(n.op, "half", False) is (precision == "float16") for n in a)


def test_a_function_whose_result_is_split_has_its_own_name(tmp_path: Path) -> None:
    model = lowered(Views(), (1, 5, 8), {"linear": "float"}, tmp_path)
    assert [n.op.name for n in parts(model, "linear")] == ["linear"] * 3
    assert model.quantization is not None and explain_float(model.graph, chosen=False) == []


def test_a_gate_in_float_leaves_the_layer_before_it_in_int8(tmp_path: Path) -> None:
    """The gate's own slices became part of the layer."""
    net = nn.Sequential(nn.Linear(64, 8), nn.GLU())
    graph = lowered(net, (1, 64), {"1": "float"}, tmp_path).graph
    ops = {n.op.name for n in graph.nodes}
    assert ops == {"quantize", "qlinear", "dequantize", "sigmoid", "mul"}


def test_layers_that_are_put_together_are_found_by_each_of_their_names() -> None:
    b = Builder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    b.origin = Origin("product")
    y = b.add(Linear(), x, b.const("w", np.ones((3, 4), np.float32)), name="y")
    b.origin = Origin("bias")
    before = b.graph([x], [b.add(Add(), y, b.const("b", np.ones(3, np.float32)), name="z")])
    graph = run_passes(before, FLOAT_PASSES)[-1][1]
    assert [n.op.name for n in graph.nodes] == ["linear"]
    for layer in ("product", "bias", "y", "z"):
        assert outputs_of_layers(before, graph, [layer]) == {"z"}


@pytest.mark.parametrize("precision", ["int4", "int4g32", "float16"])
def test_weights_of_a_layer_that_has_none(precision: str, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 4))
    with pytest.raises(CompileError) as caught:
        lowered(net, (1, 64), {"1": precision}, tmp_path)
    assert caught.value.what == f"--config: '1' = '{precision}': it has no weights"
    assert caught.value.try_ == (f'"0" = "{precision}", the layer that 1 is part of',)


def test_a_batch_norm_in_float_keeps_its_layer_in_float(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 8))
    model = lowered(net, (1, 64), {"1": "float"}, tmp_path)
    assert [n.op.name for n in model.graph.nodes] == ["linear", "quantize", "qlinear", "dequantize"]
    ((_, why),) = explain_float(model.graph)
    assert why == "1, which is kept in float, is part of it" and explain_float(model.graph, chosen=False) == []


def test_weights_of_a_batch_norm_are_those_of_its_layer(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8))
    (layer,) = parts(model := lowered(net, (1, 64), {"1": "int4"}, tmp_path), "0")
    quant = model.graph[layer.inputs[1]].quant
    assert quant is not None and quant.bits == 4


class Functions(nn.Module):
    """A BatchNorm that is folded into a convolution, and layers that are functions, so that they have no path."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.hardswish(self.norm(self.conv(x)))
        return nn.functional.avg_pool2d(y, 2)


def test_all_names_in_reports_are_accepted(tmp_path: Path) -> None:
    model = lowered(Functions(), (1, 2, 6, 6), {}, tmp_path)
    assert model.quantization is not None
    graph = model.quantization.float_graph
    names = {a.name for a in compare_layers(model.graph, graph, model.quantization.samples)}
    assert names == {"conv", "hardswish", "avg_pool2d"}
    before = model.source.graph
    for name in (*names, "norm", *(node.outputs[0] for node in graph.nodes)):
        assert outputs_of_layers(before, graph, [name])
    assert outputs_of_layers(before, graph, ["norm"]) <= outputs_of_layers(before, graph, ["conv"])
    with pytest.raises(CompileError) as caught:
        outputs_of_layers(before, graph, ["hardswich"])
    assert caught.value.have == ("avg_pool2d, conv, hardswish, norm",)

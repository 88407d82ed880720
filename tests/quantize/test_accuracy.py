"""int8 losses are bounded: every layer is compared with PyTorch's arithmetic and with float, and results of models with
state too."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Array, Graph, Tensor
from baretorch.measure.facts import _layers
from baretorch.ops.int8.arithmetic import dequantize, quantize_array
from baretorch.passes.order import FLOAT_PASSES, run_passes
from baretorch.pipeline import LoweredModel, lower
from baretorch.quantize.accuracy import compare_layers, compute_alone, sqnr_db, worst_layers
from tests.models import int8_file, int8_model, seeded
from tests.zoo.zoo import ZOO


class AddMulSoftmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(6, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.a(x), torch.relu(self.b(x))
        return torch.softmax((a + b) * b, -1)


def normal(*shape: int) -> list[tuple[torch.Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(shape, generator=draw),) for _ in range(16)]


class Gated(nn.Module):
    """Convolutions with limits and a pool, a gate, a residual and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.wide = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point, self.gate, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.first(x)), 2)
        y = self.point(nn.functional.relu6(self.wide(x)))
        y = x + y * torch.sigmoid(self.gate(y.mean((2, 3))))[:, :, None, None]
        return self.head(y.mean((2, 3)))


TRAINED: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "trained add_mul_softmax": (AddMulSoftmax, (2, 6)),
    "trained gated": (Gated, (2, 3, 8, 8)),
}


@cache
def model_of(name: str) -> LoweredModel:
    if name in TRAINED:
        return lower(train(*TRAINED[name]))
    if name == "add_mul_softmax":
        samples = normal(1, 6)
        return int8_model(from_module(seeded(AddMulSoftmax()), samples[0], name), samples)
    return int8_file(str(ZOO / f"{name}.py"))


def train(kind: type[nn.Module], shape: tuple[int, ...]) -> Source:
    """Return a trainable model that has seen data, with its own scales, and with the outputs that PyTorch computes."""
    samples = normal(*shape)
    trainable = baretorch.trainable(seeded(kind()), tuple(x[:1] for x in samples[0]))
    with torch.no_grad():
        for sample in samples:
            trainable(*sample)
    source: Source = trainable.as_source({}, "m")
    return source


def noted(model: LoweredModel) -> Graph:
    """The graph as its notes mean it: float operators, and notes where values are rounded to int8."""
    found = model.quantization
    return run_passes(model.source.graph, FLOAT_PASSES)[-1][1] if found is None else found.graph


def rounded(t: Tensor, value: Array) -> Array:
    if t.quant is None:
        return value
    if t.quant.axis is not None:
        scales = np.array(t.quant.scale).reshape([-1 if i == t.quant.axis else 1 for i in range(value.ndim)])
        return np.asarray(np.rint(value / scales) * scales, np.float32)
    scale, zero = t.quant.scale[0], t.quant.zero_point[0]
    return dequantize(quantize_array(value, scale, zero), scale, zero)


def rounding(graph: Graph, inputs: tuple[Array, ...]) -> dict[str, Array]:
    """Every value of a noted graph, rounded where its note says."""
    values = {n: rounded(t, t.data) for n, t in graph.tensors.items() if t.data is not None}
    values |= {n: rounded(graph[n], x) for n, x in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        results = node.op.reference(*(values[n] for n in node.inputs))
        values |= {n: rounded(graph[n], r.reshape(graph[n].shape)) for n, r in zip(node.outputs, results, strict=True)}
    return values


def at_the_edge(graph: Graph, values: dict[str, Array]) -> float:
    """How far the answer moves if what the last layer reads is a step off, here up, there down. A value between two
    steps is rounded by its last bit, which differs from CPU to CPU."""
    node, draw = graph.producer()[graph.outputs[0]], np.random.default_rng(0)
    moved = []
    for _ in range(8):
        given = [values[n] for n in node.inputs]
        for i, t in enumerate(graph[n] for n in node.inputs):
            if t.data is None and t.quant is not None:
                signs = draw.choice(np.float32([-1, 1]), given[i].shape)
                given[i] = given[i] + np.float32(t.quant.scale[0]) * signs
        (result,) = node.op.reference(*given)
        moved.append(float(np.abs(result.reshape(values[graph.outputs[0]].shape) - values[graph.outputs[0]]).max()))
    return max(moved)


@pytest.mark.parametrize("name", ["kws", "tinyrps", "squeeze_excite", "add_mul_softmax", *TRAINED])
def test_each_layer_is_a_step_at_most_from_the_judge(name: str) -> None:
    """Scales are equal. A trainable model is compared with the results of PyTorch, and one that Baretorch
    quantized with the float meaning of its scales."""
    model = model_of(name)
    graph, float_graph = model.graph, noted(model)
    (answer,) = model.int8_answers or ()
    samples = model.quantization.samples[:3] if model.quantization else ()
    compared = 0
    for inputs in (model.source.examples, *samples):
        right = rounding(float_graph, inputs)
        if inputs is model.source.examples:
            quant = float_graph[float_graph.outputs[0]].quant
            assert quant is not None
            mine, near = right[float_graph.outputs[0]], 1.01 * quant.scale[0] + at_the_edge(float_graph, right)
            np.testing.assert_allclose(mine, answer, atol=near, err_msg="this is what the judge computes")
        held = {float_graph[n].holds: x for n, x in right.items()}
        for node, t, wanted, made in compute_alone(graph, held, dict(zip(graph.inputs, inputs, strict=True))):
            if node is None:  # a conversion
                continue
            assert t.quant is not None
            want = quantize_array(wanted, t.quant.scale[0], t.quant.zero_point[0])
            assert np.abs(made.astype(int) - want).max() <= 1, t
            compared += 1
    computing = [n for n in graph.nodes if n.op.computes]
    assert compared == (1 + len(samples)) * len(computing)


def test_noise_is_reported_for_every_layer_in_order() -> None:
    model = model_of("ic")
    assert model.quantization is not None
    layers = compare_layers(model.graph, model.quantization.float_graph, model.quantization.samples[:2])
    assert [layer.name for layer in layers][:4] == ["0.0", "1.first.0", "1.second.0", "1"]
    assert [layer.op for layer in layers][-3:] == ["qavg_pool2d", "qlinear", "qsoftmax"]
    assert all(layer.sqnr_db is not None and 25 < layer.sqnr_db < 60 for layer in layers)
    assert layers[0].sqnr_db == layers[0].alone_db, "nothing was lost before the first layer"
    last = layers[-4]
    assert last.alone_db is not None and last.sqnr_db is not None and last.alone_db > last.sqnr_db + 2


def test_the_layer_that_suffers_is_named() -> None:
    net = seeded(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)))
    with torch.no_grad():
        net[1].bias[0] = 300  # makes the scale coarse for all the others …
        net[2].weight[:, 0] = 0  # … and helps nobody
    made = int8_model(from_module(net, normal(1, 4)[0], "net"), normal(1, 4))
    assert made.quantization is not None
    layers = compare_layers(made.graph, made.quantization.float_graph, made.quantization.samples)
    assert len(layers) == 4 and len(made.quantization.samples) == 16
    worst = worst_layers(layers)[0]
    assert worst.name in ("2", "3") and worst.sqnr_db is not None and worst.sqnr_db < 15
    assert layers[2].alone_db is not None and layers[2].alone_db < 15, "its inputs are too coarse"
    assert layers[3].alone_db is not None and layers[3].alone_db > 25, "this one only passes the noise on"


class Joined(nn.Module):
    """A BatchNorm, a softmax and a norm over other axes than the last: their int8 forms have them moved."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(4, 8, 3, padding=1), nn.Conv1d(4, 8, 5, padding=2)
        self.bn, self.group = nn.BatchNorm1d(16), nn.GroupNorm(2, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn(torch.cat([self.a(x), self.b(x)], 1)))
        return torch.softmax(self.group(y), 1)


def test_layers_are_compared_with_the_same_tensor_in_float() -> None:
    net = seeded(Joined()).train()
    net(torch.randn(32, 4, 64, generator=torch.Generator().manual_seed(1)))
    made = int8_model(from_module(net.eval(), normal(1, 4, 64)[0], "net"), normal(1, 4, 64))
    assert made.quantization is not None
    layers = compare_layers(made.graph, made.quantization.float_graph, made.quantization.samples)
    assert [y.op for y in layers] == ["qconv2d", "qconv2d", "qconv2d", "qnorm", "qsoftmax"]
    assert all(y.sqnr_db is not None and y.alone_db is not None and min(y.sqnr_db, y.alone_db) > 24 for y in layers)


def test_a_layer_in_pieces_is_compared_as_a_whole() -> None:
    """A Conv3d runs slice by slice. All slices were compared with the last one: less than 1 dB."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU()).eval()
    with baretorch.compile(
        net, normal(1, 2, 4, 4, 4)[0], board="host", int8=True, calibration=normal(1, 2, 4, 4, 4)
    ) as made:
        (found,) = _layers(made.compiled)
    assert found.name == "0" and found.sqnr_db is not None and found.sqnr_db > 35


def test_scores_are_judged_by_what_matters_to_their_softmax() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.layer(x).masked_fill(torch.arange(8) > 5, -torch.inf), -1)

    made = int8_model(from_module(seeded(Masked()), normal(3, 8)[0], "net"), normal(3, 8))
    assert made.quantization is not None
    graph, twin = made.graph, made.quantization.float_graph
    layers = compare_layers(graph, twin, made.quantization.samples)
    assert {"qsoftmax", "where"} <= {y.op for y in layers}
    assert all(y.sqnr_db is None or y.sqnr_db > 28 for y in layers), layers
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where both are infinite, as in what stays float, there is nothing to subtract
        layers = compare_layers(twin, twin, made.quantization.samples)
    assert {y.op: y.sqnr_db for y in layers}.items() >= {"where": None, "softmax": None}.items()


def test_decibels() -> None:
    assert [sqnr_db(s, e) for s, e in ((100.0, 1.0), (1.0, 0.0), (0.0, 1.0), (2.0, 1.0))] == [20.0, None, -999.0, 3.0]


def test_a_layer_that_overflows_is_named() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with torch.no_grad():
        for layer in net[:2]:
            layer.weight.fill_(1e30)
    with pytest.raises(CompileError) as caught:
        int8_model(from_module(net, normal(1, 4)[0], "net"), normal(1, 4))
    assert caught.value.what == "calibration: a layer computes NaN or infinite values, for which there is no int8 scale"
    assert caught.value.at == ("1",)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("sum", torch.full((1, 4), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sum.copy_(self.sum + torch.tanh(self.layer(x)))
        return self.sum * 2


def test_calibration_leaves_the_initial_state_alone() -> None:
    made = int8_model(frontends.from_module(seeded(Counter()), normal(1, 4)[0], "net"), normal(1, 4))
    assert made.quantization is not None
    (state,) = made.quantization.graph.state
    assert state.initial.tolist() == [[0.5] * 4]

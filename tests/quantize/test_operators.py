"""Every operator that can be int8 is: a model of it has no float layer, and is a step at most from rounded float."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from baretorch import pipeline
from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Array, Builder, DType, Graph, interpret
from baretorch.ir.io import store_inputs
from baretorch.measure.facts import compare
from baretorch.ops import OPS
from baretorch.ops.functions import Sigmoid
from baretorch.ops.int8.quantize import Dequantize
from baretorch.ops.layout import Reshape
from baretorch.ops.logic import Bitwise
from baretorch.ops.move import Copy
from baretorch.ops.recurrent import Recurrent
from baretorch.options import Observer
from baretorch.passes.order import FLOAT_PASSES, lower_graph, run_passes
from baretorch.passes.to_int8 import explain_float, float_layers
from baretorch.quantize.groups import find_groups
from baretorch.quantize.train import RoundingModule
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model, seeded

Operator = Callable[[torch.Tensor], torch.Tensor]
IMAGE, WIDE, TALL = (1, 4, 6, 8), (1, 3, 16), (2, 5, 12)


class Several(nn.Module):
    """Many operators on the same input, in one model, since making a model takes longest."""

    def __init__(self, operators: Mapping[str, Operator]) -> None:
        super().__init__()
        self.operators = list(operators.values())
        self.layers = nn.ModuleList(o for o in self.operators if isinstance(o, nn.Module))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(operator(x) for operator in self.operators)


def named(*modules: nn.Module) -> dict[str, Operator]:
    return {str(m): m for m in modules}


FUNCTIONS: dict[str, Operator] = {
    "exp": torch.exp,
    "sqrt": lambda x: torch.sqrt(x.abs() + 0.1),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.5),
    "log": lambda x: torch.log(x.abs() + 0.5),
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "sin": torch.sin,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfinv": lambda x: torch.erfinv(torch.tanh(x)),
    "erfcx": lambda x: torch.special.erfcx(x.abs()),
    "ndtr": torch.special.ndtr,
    "log_ndtr": torch.special.log_ndtr,
    "asin": lambda x: torch.asin(torch.tanh(x)),
    "acos": lambda x: torch.acos(torch.tanh(x)),
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": torch.asinh,
    "acosh": lambda x: torch.acosh(x.abs() + 1.5),
    "exp2": torch.exp2,
    "log10": lambda x: torch.log10(x.abs() + 0.5),
    "tan": lambda x: torch.tan(torch.tanh(x)),
    "atanh": lambda x: torch.atanh(torch.tanh(x) * 0.5),
    "decimals": lambda x: torch.round(x, decimals=1),
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 1),
    "half": lambda x: x * 0.5 + 1,
    "less": lambda x: 2 - x,
    "divided": lambda x: x / 3,
    "power": lambda x: x**2,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
}

MOVES: dict[str, Operator] = {
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
}

PAIRS: dict[str, Operator] = {
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "minimum": lambda x: torch.minimum(x, torch.tanh(x)),
    "maximum": lambda x: torch.maximum(x, x.flip(-1)),
    "cat": lambda x: torch.cat([x, torch.sigmoid(x), 3 * x], 1),
    "stack": lambda x: torch.stack([x, 2 * x]),
    "residual": lambda x: torch.relu(x + torch.tanh(x)),
    "difference": lambda x: x.flip(-1) - x,
    "quotient": lambda x: x / (x.flip(-1).abs() + 0.5),
    "share": lambda x: x.abs() / x.abs().sum(-1, keepdim=True),
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


STEPS: dict[str, Operator] = {
    "sign": torch.sign,
    "floor": lambda x: torch.floor(3 * x),
    "ceil": lambda x: torch.ceil(3 * x),
    "trunc": lambda x: torch.trunc(3 * x),
    "floor_divide": lambda x: torch.div(x, 0.7, rounding_mode="floor"),
    "trunc_divide": lambda x: torch.div(x, 0.7, rounding_mode="trunc"),
    "remainder": lambda x: torch.remainder(x, 0.7),
    "fmod": lambda x: torch.fmod(x, 0.7),
    "expm1": torch.expm1,
    "log2": lambda x: torch.log2(x.abs() + 0.5),
    "pow": lambda x: 1.5**x,
    "atan2": lambda x: torch.atan2(x, torch.tensor(0.5)),
    "hypot": lambda x: torch.hypot(x, torch.tensor(0.5)),
    "eq": lambda x: torch.where(torch.floor(x) == 0, x, 0.5 * x),
    "ne": lambda x: torch.where(torch.floor(x) != 0, x, 0.5 * x),
    "and": lambda x: torch.where((x > -0.5) & (x <= 0.5), x, 0.5 * x),
    "or": lambda x: torch.where((x < -0.5) | (x >= 0.5), x, 0.5 * x),
    "not": lambda x: torch.where(~(x < 0), x, 0.5 * x),
    "xor": lambda x: torch.where((x < 0) ^ (x < 1), x, 0.5 * x),
    "cast": lambda x: (x > 0).float() * x,
    "unfold": lambda x: x.unfold(-1, 5, 3),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :, :3], 2, 4, 7),
    "choose": lambda x: torch.cond(x.abs().sum() > 0, lambda x: x.flip(-1), lambda x: 2 * x, (x,)),
}

IMAGES: dict[str, Operator] = {
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bilinear with corners": lambda x: F.interpolate(x, size=(9, 11), mode="bilinear", align_corners=True),
    "pixel shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel shuffle": lambda x: F.channel_shuffle(x, 2),
    "global mean": lambda x: x.mean((2, 3)),
    "mean of rows and channels": lambda x: x.mean((1, 3)),
    "gate": lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
}


CASES: dict[str, tuple[dict[str, Operator], tuple[int, ...]]] = {
    "linear": (named(nn.Linear(12, 7), nn.Linear(12, 5, bias=False)), TALL),
    "conv1d": (
        named(
            nn.Conv1d(3, 6, 3, padding=1),
            nn.ConvTranspose1d(3, 5, 4, stride=2, padding=1),
            nn.Sequential(nn.Conv1d(3, 4, 1), nn.ReLU6()),
        ),
        WIDE,
    ),
    "conv2d": (
        named(
            nn.Conv2d(4, 6, 3, padding=1, dilation=2),
            nn.Conv2d(4, 4, 3, groups=4),
            nn.Conv2d(4, 6, 3, groups=2, stride=2),
            nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
            nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
            nn.ConvTranspose2d(4, 4, 2, stride=2, groups=4, bias=False),
            nn.Sequential(nn.ConvTranspose2d(4, 4, 2, stride=2), nn.ReLU()),
        ),
        IMAGE,
    ),
    "norms": (
        named(
            *(nn.LayerNorm(12), nn.LayerNorm((5, 12)), nn.LayerNorm(12, elementwise_affine=False), nn.RMSNorm(12)),
            *(nn.Softmax(-1), nn.LogSoftmax(-1)),
        ),
        TALL,
    ),
    "norms of images": (
        named(
            *(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4)),
            *(nn.Softmax(1), nn.LogSoftmax(1)),
        ),
        IMAGE,
    ),
    "volumes": (
        named(
            nn.Conv3d(3, 4, 3, padding=1),
            nn.Conv3d(3, 3, (2, 3, 1), groups=3),
            nn.Conv3d(3, 4, (3, 1, 1), stride=(2, 1, 1), padding=(1, 0, 0)),
            nn.Sequential(nn.Conv3d(3, 4, (1, 3, 3)), nn.ReLU()),
            nn.MaxPool3d(2),
            nn.AdaptiveMaxPool3d((2, 3, 2)),
            nn.AdaptiveAvgPool3d(1),
            nn.AvgPool3d((1, 2, 2)),
        ),
        (1, 3, 4, 5, 6),
    ),
    "pools": (named(nn.MaxPool1d(2), nn.AvgPool1d(4), nn.AdaptiveAvgPool1d(5), nn.AdaptiveMaxPool1d(5)), WIDE),
    "pools of images": (
        named(
            nn.MaxPool2d(3, 2, 1),
            nn.AvgPool2d(2),
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),
            nn.AvgPool2d(3, 2, ceil_mode=True),
            nn.AdaptiveAvgPool2d(1),
            nn.AdaptiveAvgPool2d((4, 5)),
            nn.AdaptiveMaxPool2d((4, 5)),
        ),
        IMAGE,
    ),
    "activations": (
        named(
            *(nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-0.5, 0.7), nn.LeakyReLU(0.1), nn.PReLU(), nn.ELU(), nn.SELU()),
            *(nn.CELU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid()),
            *(nn.Sigmoid(), nn.Tanh(), nn.Softplus(), nn.LogSigmoid(), nn.Hardshrink(), nn.Softshrink()),
            *(nn.Threshold(0.1, 0.2), nn.Softsign(), nn.Tanhshrink()),
        ),
        TALL,
    ),
    "functions": (FUNCTIONS, TALL),
    "moves": (MOVES, TALL),
    "pairs": (PAIRS, TALL),
    "steps": (STEPS, TALL),
    "images": (IMAGES, IMAGE),
}


@cache
def samples_of(case: str) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(CASES[case][1], generator=generator),) for _ in range(8)]


@cache
def network(case: str) -> nn.Module:
    return seeded(Several(CASES[case][0]))


@cache
def read(case: str) -> Source:
    return from_module(network(case), samples_of(case)[0], "m")


def float_graph(case: str) -> Graph:
    return run_passes(read(case).graph, FLOAT_PASSES)[-1][1]


@pytest.mark.parametrize("case", CASES)
def test_operators_are_int8(case: str) -> None:
    model = int8_model(read(case), samples_of(case), observer=Observer.MINMAX)
    assert not float_layers(model.graph), explain_float(model.graph)
    assert model.int8_answers is not None
    assert beyond_a_step(case, model.source, model.graph, model.int8_answers) == {}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_operators_that_the_user_keeps_in_float_are_float(case: str, first: int) -> None:
    """Every second operator stays float, also where its neighbours give its tensors int8 scales."""
    layers = [n.outputs[0] for n in read(case).graph.nodes if n.op.computes and n.inputs][first::2]
    model = int8_model(read(case), samples_of(case), observer=Observer.MINMAX, keep_float=tuple(layers))
    assert model.quantization is not None
    kept = {n: t for n, t in model.quantization.graph.tensors.items() if t.in_float is not None}
    made = model.graph.producer()
    for name in kept:
        node = made.get(name)
        assert node is None or not isinstance(node.op, Dequantize), f"{name} is int8"
        values = model.graph.of(node.inputs) if node is not None else ()
        assert not any(t.is_quantized for t in values), f"{node} reads int8"
    assert len(kept) >= len(layers) // 2 and sum(name in made for name in kept) >= len(kept) // 2


@pytest.mark.parametrize("case", CASES)
def test_operators_learn(case: str) -> None:
    """A trainable model in evaluation mode is at most one step from the int8 graph."""
    net = pipeline.make_trainable(read(case))
    with torch.no_grad():
        for sample in samples_of(case):
            net(*sample)
    source = net.as_source({}, "m")
    graph = lower_graph(source.graph)
    assert not float_layers(graph), explain_float(graph)
    assert source.expected is not None
    assert beyond_a_step(case, source, graph, source.expected) == {}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_pytorch(case: str) -> None:
    """Gradients of operators without rounding match PyTorch. Random values are never at a jump or a bend."""
    (x,) = samples_of(case)[1]
    found = [gradients(RoundingModule(float_graph(case)), x), gradients(network(case), x)]
    for operator, ours, right in zip(CASES[case][0], *found, strict=True):
        torch.testing.assert_close(ours, right, rtol=1e-3, atol=1e-3, msg=lambda text, o=operator: f"{o}: {text}")


def gradients(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Return the gradient of each output for the input."""
    x = x.clone().requires_grad_()
    found = []
    for y in module(x):
        weights = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
        (gradient,) = torch.autograd.grad((weights * y).sum(), x, retain_graph=True, allow_unused=True)
        found.append(torch.zeros_like(x) if gradient is None else gradient)
    return found


def beyond_a_step(case: str, source: Source, graph: Graph, find_groups: Sequence[Array]) -> dict[str, float]:
    """Return how many steps the results of operators are off, if it is more than one."""
    answers = interpret(graph, store_inputs(graph, source.examples))
    steps = {}
    for operator, name, want in zip(CASES[case][0], graph.outputs, find_groups, strict=True):
        made = graph.producer()[name].op
        assert isinstance(made, Dequantize), f"{operator} is not int8"
        assert answers[name].shape == want.shape
        steps[operator] = float(np.abs(answers[name] - want).max()) / made.scale
    return {operator: s for operator, s in steps.items() if s > 1.001}


def test_every_operator_with_an_int8_form_is_tested() -> None:
    """Recurrent layers have tests of their own, bits are of integers, and only plans have copies."""
    found = {type(node.op) for case in CASES for node in float_graph(case).nodes}
    forms = {row.op for row in OPS if row.int8 is not None and not row.op.name.endswith("quantize")}
    assert sorted(op.name for op in forms - found if not issubclass(op, (Recurrent, Bitwise, Copy))) == []


def test_an_embedding_is_a_table_of_bytes() -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(20, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.table(x))

    samples = [(torch.arange(n, n + 10).reshape(2, 5),) for n in range(11)]
    graph = int8_model(from_module(seeded(Rows()), samples[0], "m"), samples).graph
    assert not float_layers(graph) and "float32" not in {t.dtype.label for t in graph.constants()}


def test_what_stays_float_is_a_warning_with_the_reason(tmp_path: Path) -> None:
    class Running(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x).cumsum(1)

    samples = [(torch.randn(1, 6, generator=torch.Generator().manual_seed(n)),) for n in range(8)]
    source = int8_model(from_module(Running(), samples[0], "m"), samples)
    compiled = compile_model(source, load_board("host"))
    image = pipeline.build_image(compiled, tmp_path)
    (warning,) = compare(compiled, image, pipeline.run_image(compiled, image)).warnings
    assert warning.startswith("float: cumsum ") and warning.endswith("stays float: cumsum has no int8 form")


def test_models_may_be_deep() -> None:
    b = Builder()
    x = y = b.input("x", (8,), DType.FLOAT32)
    for _ in range(1500):
        y = b.add(Sigmoid(), b.add(Reshape((8,)), y))
    graph = b.graph([x], [y])
    assert len(find_groups(graph).activations) == 1501

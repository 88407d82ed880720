"""baretorch.trainable: models learn with the rounding of int8, and the image computes what they learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph, interpret
from baretorch.ir.io import store_inputs
from baretorch.ops import OPS
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.int8.quantize import Dequantize
from baretorch.ops.recurrent import Recurrent
from baretorch.passes.order import lower_graph
from baretorch.passes.to_int8 import float_layers
from baretorch.quantize.torch_operators import ROWS
from baretorch.quantize.train import RoundingModule, Trainable
from tests.cli.program import baretorch as run_baretorch
from tests.frontends.onnx.exporters import exported
from tests.models import seeded
from tests.zoo.zoo import ZOO


def cnn() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.ReLU6(), nn.Flatten()),
        *(nn.Linear(128, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)),
    )


class Last(nn.Module):
    """A recurrent layer, whose last hidden state is classified."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer, self.head = kind(6, 12, batch_first=True), nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Block(nn.Module):
    """A transformer block between linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.head = nn.Linear(6, 16), nn.Linear(16, 3)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.wide(x)).mean(1))


def images() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise, noise on a brighter ground, noise with a dark upper half."""
    torch.manual_seed(1)
    x, y = torch.randn(96, 1, 8, 8), torch.arange(96) % 3
    x[y == 1] += 0.7
    x[y == 2, :, :4] -= 1
    return x, y


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise that rises, falls or does neither."""
    torch.manual_seed(1)
    x, y = torch.randn(96, 10, 6), torch.arange(96) % 3
    return x + (y - 1)[:, None, None] * torch.linspace(-1, 1, 10)[None, :, None], y


def learn(net: Trainable, x: torch.Tensor, y: torch.Tensor, steps: int = 60, rate: float = 2e-2) -> list[float]:
    """The loss before each step."""
    optimizer = torch.optim.Adam(net.parameters(), rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        net.reset()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


DATA = Path(__file__).parents[1] / "frontends" / "data"
Make = Callable[[], nn.Module]
TASKS: dict[str, tuple[Make, Callable[[], tuple[torch.Tensor, torch.Tensor]]]] = {
    "cnn": (cnn, images),
    "lstm": (lambda: Last(nn.LSTM), rows),
    "gru": (lambda: Last(nn.GRU), rows),
    "transformer": (Block, rows),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_model_learns_and_the_image_computes_what_it_learned(name: str, tmp_path: Path) -> None:
    make, task = TASKS[name]
    x, y = task()
    torch.manual_seed(0)
    net = baretorch.trainable(make(), x[:1])
    losses = learn(net, x, y)
    assert losses[-1] < losses[0] / 2
    net.eval()
    with torch.no_grad():
        want = net(x)
    model = baretorch.compile(net, board="host")
    graph = model.compiled.graph
    assert float_layers(graph) == []
    model.build(tmp_path)
    have = torch.cat([torch.from_numpy(np.asarray(model.run(sample[None]))) for sample in x])
    model.close()
    made = graph.producer()[graph.outputs[0]].op
    assert isinstance(made, Dequantize)
    assert float((have - want).abs().max()) <= 4.001 * made.scale, "of several layers, each may add a step"
    assert (have.argmax(1) == want.argmax(1)).float().mean() >= 0.98
    assert (have.argmax(1) == y).float().mean() > 0.85


RECURRENT: list[tuple[type[nn.RNNBase], dict[str, Any], list[tuple[int, ...]]]] = [
    (nn.LSTM, {"bidirectional": True, "batch_first": True}, [(2, 5, 6)]),
    (nn.GRU, {}, [(20, 1, 6)]),
    (nn.RNN, {"bidirectional": True}, [(5, 2, 6)]),
    (nn.RNN, {"nonlinearity": "relu"}, [(5, 1, 6), (1, 1, 8)]),
    (nn.LSTM, {}, [(5, 1, 6), (1, 1, 8), (1, 1, 8)]),
    (nn.GRU, {}, [(5, 1, 6), (1, 1, 8)]),
]


class Layer(nn.Module):
    """A recurrent layer with all its results; further inputs are its states."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 8, **options)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, ends = self.layer(x, *([states] if len(states) > 1 else states))
        return (y, *(ends if isinstance(ends, tuple) else (ends,)))


@pytest.mark.parametrize(("kind", "options", "shapes"), RECURRENT)
def test_recurrent_layers(kind: type[nn.RNNBase], options: dict[str, Any], shapes: Sequence[tuple[int, ...]]) -> None:
    """Float layers and their gradients match PyTorch. In evaluation mode, images are at most one step off."""
    torch.manual_seed(0)
    net = Layer(kind, **options)
    samples = [tuple(torch.randn(s) for s in shapes) for _ in range(4)]
    trained = baretorch.trainable(net, samples[0])
    plain = RoundingModule(without_notes(trained.graph))
    for model in (net, plain):
        sum(y.square().sum() for y in model(*samples[1])).backward()
    own, right = dict(plain.named_parameters()), dict(net.named_parameters())
    torch.testing.assert_close(plain(*samples[1]), net(*samples[1]))
    for name in ("layer.weight_ih_l0", "layer.weight_hh_l0"):
        torch.testing.assert_close(own[name].grad, right[name].grad)
    with torch.no_grad():
        for sample in samples:
            trained(*sample)
    assert steps_apart(trained, samples[0]) <= 1.001


def without_notes(graph: Graph) -> Graph:
    from dataclasses import replace

    return replace(graph, tensors={n: replace(t, quant=None) for n, t in graph.tensors.items()})


def steps_apart(trained: Trainable, sample: tuple[torch.Tensor, ...]) -> float:
    """How many steps of int8 the compiled graph's answer is from the module's, at most."""
    source = trained.as_source({"forward": sample}, "m")
    graph = lower_graph(source.graph)
    values = interpret(graph, store_inputs(graph, source.examples), keep=True)
    apart = [0.0]
    for name, want in zip(graph.outputs, source.expected or (), strict=True):
        made = graph.producer()[name]
        if isinstance(made.op, Dequantize):
            apart.append(float(np.abs(values[name] - want).max()) / made.op.scale)
    assert len(apart) > 1
    return max(apart)


@pytest.mark.parametrize("name", ["encoder", "gru", "kws_raw", "squeeze_excite", "streaming_gru", "unet_small"])
def test_all_weights_of_a_model_have_gradients(name: str) -> None:
    source = pipeline.read(str(ZOO / f"{name}.py"))
    source.module.requires_grad_(True)
    net = pipeline.make_trainable(source)
    for sample in islice(source.calibration or (), 4):
        net.reset()
        net(*sample).square().mean().backward()
    gradients = {key: parameter.grad for key, parameter in net.named_parameters()}
    assert gradients
    for key, gradient in gradients.items():
        assert gradient is not None and bool(gradient.isfinite().all()) and bool(gradient.any()), key


def test_every_operator_with_an_int8_form_learns() -> None:
    """Those without a row only move values, or compute element by element, which needs none."""
    forms = [row.op for row in OPS if row.int8 is not None and not row.op.name.endswith("quantize")]
    strange = [op for op in forms if op not in ROWS and op.computes and not issubclass(op, (Elementwise, Recurrent))]
    assert strange == [] and len(forms) > 70


def test_parameters_have_the_names_of_the_user() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
            self.rnn, self.ranges = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)
            self.gain = nn.Parameter(torch.rand(3))
            self.register_buffer("window", torch.rand(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, _ = self.rnn(self.features(x).flatten(2).transpose(1, 2))
            return self.ranges(torch.tanh(y * self.gain) * self.window)

    net = seeded(Net())
    trained = baretorch.trainable(net, torch.randn(1, 2, 6, 6))
    found = {name: p.requires_grad for name, p in trained.named_parameters()}
    assert found == {
        **dict.fromkeys(["features.0.weight", "features.0.bias", "rnn.weight_ih_l0", "rnn.weight_hh_l0"], True),
        **dict.fromkeys(["rnn.bias", "gain", "ranges_.weight", "ranges_.bias"], True),
    }


def test_what_was_frozen_stays_frozen() -> None:
    net = nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).eval()
    net[:2].requires_grad_(False)
    trained = baretorch.trainable(net, torch.randn(1, 4))
    assert [n for n, p in trained.named_parameters() if p.requires_grad] == ["3.weight", "3.bias"]


def test_weights_and_ranges_come_back_from_a_state_dict() -> None:
    x, y = images()
    first, second = (baretorch.trainable(cnn(), x[:1]) for _ in range(2))
    learn(first, x, y, 3)
    second.load_state_dict(first.state_dict())
    for net in (first, second):
        net.eval()
    torch.testing.assert_close(first(x), second(x), rtol=0, atol=0)
    assert not torch.equal(first(x), baretorch.trainable(cnn(), x[:1])(x))


def test_evaluation_changes_nothing() -> None:
    x, _ = images()
    net = baretorch.trainable(cnn(), x[:1])
    net(x)
    before = net.ranges.clone()
    net.eval()
    net(100 * x)
    assert torch.equal(net.ranges, before)
    net.train()
    net(100 * x)
    assert not torch.equal(net.ranges, before)


def test_batches_are_along_the_first_dimension_or_stacked() -> None:
    net = baretorch.trainable(nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1)), torch.randn(2, 4))
    x = torch.randn(6, 4)
    assert net(x).shape == (6, 3) and net(x.reshape(3, 2, 4)).shape == (3, 2, 3)
    torch.testing.assert_close(net.eval()(x), net(x.reshape(3, 2, 4)).flatten(0, 1))
    with pytest.raises(CompileError) as caught:
        net(torch.randn(5, 4))
    assert caught.value.what == "input 'input' has the wrong shape"
    assert caught.value.need == ("[2, 4], a multiple of it along the first dimension, or a stack of such inputs",)


def test_inputs_of_one_batch_are_alike() -> None:
    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.tanh(a) * b

    net = baretorch.trainable(Two(), (torch.randn(1, 4), torch.randn(1, 4)))
    a = torch.randn(3, 4)
    torch.testing.assert_close(net(a, b=torch.ones(1, 4)), torch.tanh(a), rtol=0, atol=0.02)
    with pytest.raises(CompileError) as caught:
        net(a, torch.ones(2, 4))
    assert caught.value.what == "the inputs are batches of different sizes"
    with pytest.raises(CompileError, match=r"the model takes 2 input\(s\), 0 were given"):
        net()


class Running(nn.Module):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.copy_(0.5 * self.mean + torch.tanh(self.layer(x)))
        return self.mean * 2


def test_state_goes_on_from_call_to_call_and_gradients_flow_back_through_it() -> None:
    torch.manual_seed(0)
    net, x = baretorch.trainable(Running(), torch.randn(1, 4)), torch.randn(6, 3, 4)
    optimizer, losses = torch.optim.Adam(net.parameters(), 0.05), []
    for _ in range(20):
        net.reset()
        optimizer.zero_grad()
        loss = (torch.stack([net(frame) for frame in x])[-1] - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    with pytest.raises(CompileError, match="a batch of 2 after one of 3"):
        net(x[0, :2])
    net.eval()
    net.reset()
    model = baretorch.compile(net, board="host")
    with torch.no_grad():
        for frame in x[:, :1]:
            np.testing.assert_allclose(np.asarray(model.run(frame)), net(frame).numpy(), atol=0.06)
    model.close()


def test_a_layer_can_stay_float_or_have_other_bits(tmp_path: Path) -> None:
    x, y = images()
    kept = baretorch.trainable(cnn(), x[:1], keep_float=["12"])
    kept(x)
    graph = lower_graph(kept.as_source({}, "m").graph)
    assert [name.split()[0] for name in float_layers(graph)] == ["linear"]
    (tmp_path / "bits.toml").write_text('[layers]\n"8" = "int4"\n"12" = "int16"\n')
    few = baretorch.trainable(cnn(), x[:1], config=str(tmp_path / "bits.toml"))
    losses = learn(few, x, y)
    assert losses[-1] < losses[0] / 2
    few.eval()
    source = few.as_source({}, "m")
    graph = lower_graph(source.graph)
    (wide,) = [t for t in graph.constants() if t.shape == (16, 128)]
    assert wide.dtype is DType.INT8 and wide.data is not None and np.abs(wide.data).max() == 7
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    with torch.no_grad():
        np.testing.assert_allclose(have, few(x[:1]).numpy(), atol=0.1)


def from_torch(folder: Path) -> Trainable:
    return baretorch.trainable(cnn(), images()[0][:1])


def from_onnx(folder: Path) -> Trainable:
    return baretorch.trainable(str(exported(cnn().eval(), (images()[0][:1],), folder / "net.onnx", False)))


def from_tflite(folder: Path) -> Trainable:
    return baretorch.trainable(DATA / "lstm.tflite")


def tones() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise that is loud in one of four pairs of channels."""
    torch.manual_seed(1)
    x, y = torch.randn(64, 16, 8), torch.arange(64) % 4
    return x + 1.5 * nn.functional.one_hot(y, 4).repeat_interleave(2, 1)[:, None], y


@pytest.mark.parametrize(("read", "task"), [(from_torch, images), (from_onnx, images), (from_tflite, tones)])
def test_models_and_files_learn_and_run_on_a_board(
    read: Callable[[Path], Trainable], task: Callable[[], tuple[torch.Tensor, torch.Tensor]], tmp_path: Path
) -> None:
    x, y = task()
    net = read(tmp_path)
    losses = learn(net, x, y, 40)
    assert losses[-1] < 0.8 * losses[0]
    net.eval()
    net.reset()
    with torch.no_grad():
        want = net(x[:8])
    model = baretorch.compile(net, board="mps2-an386")
    graph = model.compiled.graph
    assert float_layers(graph) == []
    answers = []
    for sample in x[:8]:
        model.reset()
        answers.append(torch.from_numpy(np.asarray(model.run(sample[None]))))
    model.close()
    have = torch.cat(answers)
    made = graph.producer()[graph.outputs[0]].op
    assert isinstance(made, Dequantize)
    assert float((have - want).abs().max()) <= 4.001 * made.scale
    assert (have.argmax(1) == y[:8]).float().mean() >= 0.75


MODEL = """
import torch
from torch import nn
import baretorch

def model():
    torch.manual_seed(0)
    net = baretorch.trainable(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), inputs())
    net(torch.randn(64, 4))
    return net.eval()

def inputs():
    return torch.ones(1, 4)
"""


def test_a_model_file_returns_what_was_trained(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL)
    options = ["--board", "host", "--out", str(tmp_path / "out"), "--json"]
    done = run_baretorch("run", str(tmp_path / "net.py"), *options)
    assert done.code == 0, done.err
    found = done.json()
    assert found["dtype"] == "int8" and found["float_layers"] == [] and found["max_lsb"] <= 1


def test_what_has_seen_no_data_is_not_compiled() -> None:
    net = baretorch.trainable(nn.Linear(4, 2), torch.randn(1, 4))
    with pytest.raises(CompileError) as caught:
        baretorch.compile(net, board="host")
    assert caught.value.what == "the model has no int8 scales: it has seen no data yet, or values that overflow"
    net(torch.full((1, 4), torch.inf))
    with pytest.raises(CompileError) as caught:
        baretorch.compile(net, board="host")
    assert caught.value.need == ("at least one batch in training mode, with finite values",)


def test_what_passes_no_gradient_on_is_named() -> None:
    class Best(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).topk(2).values

    with pytest.raises(CompileError) as caught:
        baretorch.trainable(Best(), torch.randn(1, 4))
    assert caught.value.what == "topk has no gradient, so layers before it cannot be trained"


def test_options_of_others_and_models_without_inputs() -> None:
    with pytest.raises(CompileError) as caught:
        baretorch.trainable(nn.Linear(4, 2), torch.randn(1, 4), observer="minmax")
    assert caught.value.what == "trainable() has no option 'observer'"
    with pytest.raises(CompileError) as caught:
        baretorch.trainable(nn.Linear(4, 2))
    assert caught.value.what == "trainable() needs example inputs for a model"


def test_there_is_no_floor_under_scales() -> None:
    net = seeded(nn.Linear(8, 8, bias=False))
    with torch.no_grad():
        net.weight.mul_(1e-6)
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(0))
    trained, want = baretorch.trainable(net, x[:1]), net(x).detach()
    noise = torch.square(trained(x).detach() - want).sum() / torch.square(want).sum()
    assert float(noise) < 1e-3

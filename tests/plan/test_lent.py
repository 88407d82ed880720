"""`--buffers caller` writes every output in full to its own buffer, whatever shares memory with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import pipeline
from baretorch.frontends import from_methods, from_module
from baretorch.frontends.torch.export import run_module
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.ir.io import arrange_inputs, real_outputs, store_inputs
from baretorch.machines.host_program import on_host
from baretorch.options import Buffers, Compiler, Input, Io, Options, Weights
from baretorch.plan import make_plan, shares
from baretorch.quantize.watch import in_numpy, watching
from baretorch.targets.boards import load_board
from baretorch.targets.parts import CoreGroup
from tests.guarded import Guarded, run_guarded
from tests.models import compile_model, int8_model
from tests.plan.test_banks import smaller

HOST = load_board("host")
LENT = Options(buffers=Buffers.CALLER)
CALLS = 3


class Net(nn.Module):
    """Returns what `answer` makes of its input, two layers and a state."""

    def __init__(self, answer: Callable[..., object]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.constant = nn.Parameter(torch.arange(8.0).reshape(2, 4))
        self.register_buffer("state", torch.full((1, 4, 4), 0.5))
        self.answer = answer

    def forward(self, x: torch.Tensor) -> object:
        return self.answer(self, x, self.layer(x))


def remembered(net: Net, x: torch.Tensor, y: torch.Tensor) -> object:
    before = net.state.clone()
    net.state.copy_(net.state * 0.5 + y)
    return before, net.state, net.state[:, 1:3], y


ANSWERS: dict[str, Callable[[Net, torch.Tensor, torch.Tensor], object]] = {
    "a part": lambda net, x, y: (y, y[:, -1]),
    "a part first": lambda net, x, y: (y[:, 2:], y),
    "parts of each other": lambda net, x, y: (y[:, 1:], y[:, 1:3], y[:, 2]),
    "parts only": lambda net, x, y: (y[:, :2], y[:, 2:]),
    "a reshape": lambda net, x, y: (y.reshape(16), y),
    "only a reshape": lambda net, x, y: y.reshape(2, 8),
    "a permutation": lambda net, x, y: (y.transpose(1, 2), y),
    "twice": lambda net, x, y: (y, y),
    "three times, and a part": lambda net, x, y: (y, y[:, 1], y, y),
    "the input": lambda net, x, y: (x, y),
    "a part of the input": lambda net, x, y: (y, x[:, 1:]),
    "the input twice": lambda net, x, y: (x, y, x),
    "a constant": lambda net, x, y: (net.constant, y),
    "a part of a constant": lambda net, x, y: (y, net.constant[1]),
    "state": remembered,
    "a cat and its inputs": lambda net, x, y: (torch.cat([y, z := net.other(x)], 1), z, y),
    "a cat and its second input": lambda net, x, y: (z := net.other(x), torch.cat([y, z], 1)),
    "a cat with itself": lambda net, x, y: (torch.cat([y, y], 1), y),
    "used on": lambda net, x, y: (y, net.other(y)),
    "a part used on": lambda net, x, y: (y[:, -1], net.other(y), y),
    "split": lambda net, x, y: (*y.chunk(2, 1), y),
}


def asked(net: nn.Module, calls: Sequence[tuple[torch.Tensor, ...]], graph: Graph) -> list[tuple[Array, ...]]:
    own, orders = copy.deepcopy(net), [port.order for port in graph.gives()]
    return [tuple(np.array(y) for y in run_module(own, x, orders)) for x in calls]


def inputs(shape: tuple[int, ...] = (1, 4, 4)) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(1)
    return [(torch.randn(shape),) for _ in range(CALLS)]


def test_every_output_is_written_in_its_own_buffer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On one core and two, in fp32 and int8, with buffers that begin at odd multiples of 4."""
    monkeypatch.setattr(shares, "LEAST", 1)
    two = replace(HOST, chip=replace(HOST.chip, cores=CoreGroup(2, "", 0)))
    models, wanted = [], {}
    for number, answer in enumerate(ANSWERS.values()):
        net, calls = Net(answer).eval(), inputs()
        source = from_module(net, calls[0], "m")
        graph = pipeline.lower(source).graph
        eager = asked(net, calls, graph)
        given = [arrange_inputs(graph, x) for x in calls]
        for kind, board, options in (("one", HOST, LENT), ("two", two, replace(LENT, cores=2))):
            plan = make_plan(graph, board, options)
            models.append(Guarded(f"m{number}_{kind}", {"forward": plan}, [("forward", x) for x in given]))
            wanted[models[-1].name] = (eager, 1e-5)
        small = int8_model(source, calls).graph
        small = pipeline.with_io(small, Io.FLOAT)
        memory: dict[str, Array] = {}
        runs = [interpret(small, x, memory=memory) for x in given]
        plan = make_plan(small, HOST, LENT)
        models.append(Guarded(f"m{number}_int8", {"forward": plan}, [("forward", x) for x in given]))
        wanted[models[-1].name] = ([tuple(run[n] for n in small.outputs) for run in runs], 0.0)
        for exact, rounded in zip(eager, wanted[models[-1].name][0], strict=True):
            for a, b in zip(exact, rounded, strict=True):
                np.testing.assert_allclose(a, b, atol=0.1)
    for name, found in run_guarded(models, tmp_path).items():
        right, near = wanted[name]
        case = list(ANSWERS)[int(name.partition("_")[0].removeprefix("m"))]
        for have, want in zip(found, right, strict=True):
            for a, b in zip(have, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=near, err_msg=f"{case}, {name}")


def test_unaligned_buffers_of_bytes(tmp_path: Path) -> None:
    """Buffers that the model computes in begin at a multiple of 4, as model.h requires; buffers that it copies begin
    anywhere."""
    net, calls = Net(lambda net, x, y: (y, y[:, -1], net.other(y))).eval(), inputs()
    source = int8_model(from_module(net, calls[0], "m"), calls)
    graph = pipeline.with_io(source.graph, Io.INT8)
    given = [store_inputs(graph, arrange_inputs(source.graph, x)) for x in calls]
    for i, options in enumerate((LENT, Options())):
        model = Guarded("m", {"forward": make_plan(graph, HOST, options)}, [("forward", x) for x in given])
        for have, x in zip(run_guarded([model], tmp_path / str(i))["m"], given, strict=True):
            want = interpret(graph, x)
            for name, y in zip(graph.outputs, have, strict=True):
                np.testing.assert_array_equal(y, want[name])


class Methods(nn.Module):
    """Two methods with one state; the second returns what the first remembers, and a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("state", torch.zeros(1, 4))

    def put(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x) + self.state
        self.state.copy_(y)
        return y, y[:, 1:]

    def take(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.state, self.state[:, 2:], self.layer(x)


def test_several_methods(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Methods().eval()
    x = torch.randn(1, 4)
    source = from_methods(net, {"put": (x,), "take": (x,)}, "m")
    plans = compile_model(source, HOST, LENT).plans
    order = ["put", "take", "put", "take", "take"]
    calls = [(name, (torch.randn(1, 4),)) for name in order]
    given = [(name, arrange_inputs(plans[name].graph, x)) for name, x in calls]
    found = run_guarded([Guarded("m", plans, given)], tmp_path)["m"]
    for (name, x), have in zip(calls, found, strict=True):
        orders = [port.order for port in plans[name].graph.gives()]
        for a, b in zip(have, run_module(net, x, orders, method=name), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


class Image(nn.Module):
    """Returns the image after two convolutions, and the last of its rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Conv2d(2, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.b(torch.relu(self.a(x))).permute(0, 2, 3, 1)
        return y, y[:, -1], y


@pytest.mark.parametrize("options", [replace(LENT, input=Input.ROWS), replace(LENT, ram=12_000)], ids=["rows", "bands"])
def test_rows_and_bands(options: Options, tmp_path: Path) -> None:
    net = Image().eval()
    calls = [(x[0].to(memory_format=torch.channels_last),) for x in inputs((1, 2, 24, 16))]
    graph = pipeline.lower(from_module(net, calls[0], "m")).graph
    plan = make_plan(graph, HOST, options)
    assert plan.bands is not None
    model = Guarded("m", {"forward": plan}, [("forward", arrange_inputs(graph, x)) for x in calls])
    for have, want in zip(run_guarded([model], tmp_path)["m"], asked(net, calls, graph), strict=True):
        for a, b in zip(have, want, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
    ("board", "options"),
    [
        ("pico2w", {"cores": 2}),
        ("cluster8", {}),
        ("corstone-300", {"int8": True}),
        ("mps2-an386", {"int8": True, "io": "int8"}),
    ],
    ids=["two cores", "cluster", "NPU", "int8"],
)
def test_boards(board: str, options: dict[str, object]) -> None:
    """The image answers as the interpreter does, call by call."""
    net = Net(lambda net, x, y: (y, y[:, -1], net.other(torch.relu(y)), remembered(net, x, y)[1], x)).eval()
    calls = inputs()
    if options.get("int8"):
        net = Net(lambda net, x, y: (y, y[:, -1], net.other(torch.relu(y)))).eval()
        options = {**options, "calibration": calls}
    model = baretorch.compile(net, calls[0], board=board, buffers="caller", **options)
    graph, memory = model.compiled.graph, dict[str, Array]()
    try:
        for x in calls:
            found = interpret(graph, store_inputs(graph, arrange_inputs(model.compiled.source.graph, x)), memory=memory)
            want = real_outputs(graph, [found[name] for name in graph.outputs])
            for a, b in zip(model.run(*x), want, strict=True):
                np.testing.assert_allclose(
                    a.reshape(-1), b.reshape(-1), rtol=0, atol=0.0 if "int8" in options else 1e-4
                )
    finally:
        model.close()


class Deep(nn.Module):
    """Layers whose weights are more than the chip has RAM for; some of their results are outputs, too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((16, *[48] * 7, 8)))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = [x]
        for layer in self.layers:
            made.append(layer(made[-1]))
        return made[-1], made[4], made[4][:, 8:16], made[7], x, made[-1]


def test_weights_from_a_stream(tmp_path: Path) -> None:
    source = from_module(Deep().eval(), (torch.randn(1, 16),), "m")
    options = replace(LENT, weights=Weights.STREAM, toolchain=Compiler.GCC)
    made = compile_model(source, smaller(load_board("pico"), "SRAM", 36 << 10), options)
    assert made.plan.schedule.copies and made.plan.layout.lent
    run = pipeline.run_image(made, pipeline.build_image(made, tmp_path))
    want = interpret(made.graph, store_inputs(made.graph, source.examples))
    for name, y in zip(made.graph.outputs, run.outputs, strict=True):
        np.testing.assert_allclose(y, want[name], atol=1e-4)


# Int8 models are calibrated by a program in which every watched tensor is an output.


class Last(nn.Module):
    """A recurrent layer of which only the last step is read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.LSTM(4, size, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0][:, -1]


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.other = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(self.layer(x))
        return y[:, 4:], self.other(y)


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x) * 5
        return self.c(torch.relu(self.b(y[:, 2:])) + y[:, :-2])


class First(nn.Module):
    """A classifier that reads the first step of a normalised sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm, self.other = nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.norm(self.layer(x) + x)[:, 0])


WATCHED = {
    "last 4": (Last(4), (1, 4, 4)),
    "last 16": (Last(16), (1, 8, 4)),
    "two": (Two(), (1, 8, 16)),
    "skip": (Skip(), (1, 8, 16)),
    "first": (First(), (1, 8, 16)),
}


@pytest.mark.parametrize("name", WATCHED)
def test_calibration_in_c_and_by_the_interpreter_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no false warning, and scales are the same."""
    net, shape = WATCHED[name]
    torch.manual_seed(1)
    samples = [(torch.randn(shape),) for _ in range(8)]
    source = from_module(net.eval(), samples[0], "m")
    in_c = int8_model(source, samples)
    monkeypatch.setattr(pipeline, "on_host", in_numpy)
    plain = int8_model(source, samples)
    assert in_c.quantization is not None and plain.quantization is not None
    assert in_c.warnings == plain.warnings == ()
    for one, other in zip(
        in_c.quantization.graph.tensors.values(), plain.quantization.graph.tensors.values(), strict=True
    ):
        assert (one.quant is None) == (other.quant is None)
        if one.quant is not None and other.quant is not None:
            np.testing.assert_allclose(one.quant.scale, other.quant.scale, rtol=0.01)
            np.testing.assert_allclose(one.quant.zero_point, other.quant.zero_point, atol=1)


def test_every_watched_tensor_is_seen() -> None:
    """Views of each other, too."""
    net, shape = Last(16), (1, 8, 4)
    graph = pipeline.lower(from_module(net.eval(), (torch.randn(shape),), "m")).graph
    names = [name for node in graph.nodes for name in node.outputs]
    with watching(graph, names, on_host) as seen, watching(graph, names, in_numpy) as right:
        for x in inputs(shape):
            have, want = (run([x[0].numpy()]) for run in (seen, right))
            for name in names:
                np.testing.assert_allclose(have[name], want[name], atol=1e-5)

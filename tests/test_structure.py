"""A model may have state, several methods, and nested inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.measure.facts import RunFacts, compare
from baretorch.ops.move import Copy
from baretorch.options import Options
from baretorch.targets.boards import load_board

BOARD = "mps2-an386"


def run(source: frontends.Source, folder: Path) -> RunFacts:
    compiled = pipeline.compile_source(source, load_board(BOARD))
    image = pipeline.build_image(compiled, folder)
    return compare(compiled, image, pipeline.run_image(compiled, image))


class Window(nn.Module):
    """The last three inputs and a running value, both of which begin as something."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("level", torch.full((1, 4), 0.5))
        self.register_buffer("window", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = self.level.clone()
        self.level.copy_(torch.tanh(self.layer(x) + self.level))
        self.window.copy_(torch.cat([self.window[1:], x]))
        return self.level * 1, self.window * 1, before


def test_state_lives_from_run_to_run_and_forgets_when_asked(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Window()
    source = frontends.from_module(module, (torch.randn(1, 4),), "window")
    compiled = pipeline.compile_source(source, load_board(BOARD))
    image = pipeline.build_image(compiled, tmp_path)
    machine = open_machine(image, compiled.c.run)
    link = Link(machine)
    try:
        for _ in range(2):  # the second time after a reset
            for i in range(5):
                x = torch.full((1, 4), float(i))
                with torch.no_grad():
                    want = module(x)
                have = call_image(link, compiled.graph, [x.numpy()])
                for a, b in zip(have, want, strict=True):
                    np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6)
            link.reset()
            module.level.fill_(0.5)
            module.window.zero_()
    finally:
        machine.close()


class Swap(nn.Module):
    """Each state becomes the other, and the old one is an output: nothing may be overwritten too early."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.tensor([1.0, 2.0]))
        self.register_buffer("b", torch.tensor([3.0, 4.0]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b = self.a.clone(), self.b.clone()
        self.a.copy_(b)
        self.b.copy_(a)
        return x + a, a, b


def test_states_can_trade_places(tmp_path: Path) -> None:
    facts = run(frontends.from_module(Swap(), (torch.ones(2),), "swap"), tmp_path)
    assert facts.max_error == 0
    assert [o.tolist() for o in facts.run.outputs] == [[4, 5], [3, 4], [1, 2]]


class Remembers(nn.Module):
    """A window that moves on, an LSTM's two states, and a mean: all can be renewed where they lie."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(6, 5)
        for name, shape in (("window", (1, 4, 6)), ("h", (1, 5)), ("c", (1, 5)), ("mean", (1, 6))):
            self.register_buffer(name, torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.window.copy_(torch.cat([self.window[:, 1:], torch.tanh(x).unsqueeze(1)], 1))
        self.mean.copy_(self.mean * 0.9 + x * 0.1)
        h, c = self.cell(self.window.sum(1) + self.mean, (self.h, self.c))
        self.h.copy_(h)
        self.c.copy_(c)
        return h.sum(1)


@pytest.mark.parametrize("board", ["host", "mps2-an386", "pico"])
def test_state_is_updated_in_place(board: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Remembers()
    source = frontends.from_module(module, (torch.randn(1, 6),), "remembers")
    compiled = pipeline.compile_source(source, load_board(board))
    assert not [step for step in compiled.plan.steps if isinstance(step.call.op, Copy)]
    image = pipeline.build_image(compiled, tmp_path)
    machine = open_machine(image, compiled.c.run)
    try:
        link = Link(machine)
        for _ in range(6):
            x = torch.randn(1, 6)
            with torch.no_grad():
                want = module(x)
            (have,) = call_image(link, compiled.graph, [x.numpy()])
            np.testing.assert_allclose(have, want.numpy(), rtol=1e-5, atol=1e-6)
    finally:
        machine.close()


class Coder(nn.Module):
    """Two methods over one weight and one counter."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)
        self.register_buffer("level", torch.ones(1, 3))

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        self.level.copy_(torch.tanh(self.level + self.layer(x)))
        return self.level * 1

    def score(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.level

    def plain(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


def coder() -> tuple[Coder, dict[str, tuple[torch.Tensor, ...]]]:
    torch.manual_seed(0)
    x = (torch.randn(1, 8),)
    return Coder(), {"encode": x, "score": x, "plain": x}


@pytest.mark.parametrize("method", ["encode", "score", "plain"])
def test_methods_share_weights_arena_and_state(method: str, tmp_path: Path) -> None:
    module, methods = coder()
    source = frontends.from_methods(module, methods, "coder", method)
    facts = run(source, tmp_path)
    assert facts.max_error < 1e-6
    assert facts.compiled.c.run == f"coder_{method}_run"
    weights = facts.compiled.c.files["weights.c"]
    assert weights.count("float32[24]") == 1, "the layer's weights are there once"
    plans = facts.compiled.plans.values()
    assert len({plan.layout.buffer("level").offset for plan in plans}) == 1
    header = facts.compiled.c.files["model.h"]
    assert all(f"void coder_{m}_run(const float *x, float *y);" in header for m in methods)


def test_an_unknown_method_is_named() -> None:
    module, methods = coder()
    with pytest.raises(CompileError) as caught:
        frontends.from_methods(module, methods, "coder", "decode")
    assert caught.value.render() == "error: the model has no method 'decode'\n  have  encode, score, plain"


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, more: dict[str, torch.Tensor]) -> dict[str, object]:
        return {"sum": x + more["p"], "pair": (more["q"], [x * 2])}


def test_nested_inputs_and_outputs_keep_their_names(tmp_path: Path) -> None:
    inputs = (torch.ones(2), {"q": torch.arange(3.0), "p": torch.tensor([4.0, 5.0])})
    facts = run(frontends.from_module(Nested(), inputs, "nested"), tmp_path)
    assert facts.max_error == 0
    assert (
        "void nested_run(const float *x, const float *more_q, const float *more_p, "
        "float *sum, float *pair_0, float *pair_1_0);"
    ) in facts.compiled.c.files["model.h"]


class Passing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x, self.table, x, x.reshape(1, 2)


def test_outputs_may_be_inputs_and_constants(tmp_path: Path) -> None:
    facts = run(frontends.from_module(Passing(), (torch.tensor([1.0, 2.0]),), "passing"), tmp_path)
    assert facts.max_error == 0


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = nn.Linear(8, 8), nn.Linear(8, 4)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.into(x))

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return self.back(x)


def test_a_method_may_lack_the_layer_that_is_placed() -> None:
    x = (torch.ones(1, 8),)
    source = frontends.from_methods(Halves(), {"encode": x, "decode": x}, "halves", "encode")
    compiled = pipeline.compile_source(source, load_board("pico"), Options(place={"into": "SCRATCH"}))
    banks = {name: [bank.name for bank in plan.layout.banks] for name, plan in compiled.plans.items()}
    assert banks == {"encode": ["SRAM", "SCRATCH"], "decode": ["SRAM"]}
    with pytest.raises(CompileError, match="no layer is called nothing"):
        pipeline.compile_source(source, load_board("pico"), Options(place={"nothing": "SCRATCH"}))


def test_a_layer_that_is_a_states_next_value_can_be_placed() -> None:
    class Next(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.register_buffer("h", torch.zeros(1, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            following = self.a(torch.tanh(x + self.h))
            self.h.copy_(following)
            return x.sum(1)

    source = frontends.from_module(Next(), (torch.ones(1, 8),), "m")
    plan = pipeline.compile_source(source, load_board("pico"), Options(place={"a": "SCRATCH"})).plan
    assert [bank.name for bank in plan.layout.banks] == ["SRAM", "SCRATCH"]


class Named(nn.Module):
    def forward(self, x: torch.Tensor, x_count: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
        return x * x_count + X


def test_names_of_inputs_do_not_meet_in_macros(tmp_path: Path) -> None:
    source = frontends.from_module(Named(), tuple(torch.full((1, 4), float(i)) for i in (2, 3, 4)), "m")
    facts = run(source, tmp_path)
    assert facts.max_error == 0

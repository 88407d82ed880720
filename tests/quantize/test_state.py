"""State in int8 models, however the module changes it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.frontends import from_module
from baretorch.ir.graph import DType
from tests.models import int8_model


class Average(nn.Module):
    """A running mean, a counter, and the last three inputs."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        self.layer = nn.Linear(4, 8)
        self.register_buffer("mean", torch.full((1, 8), 0.5))
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("last", torch.zeros(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.layer(x))
        if self.in_place:
            self.mean.mul_(0.9).add_(y * 0.1)
            self.count.add_(0.125)
            self.last[1:] = self.last[:2].clone()
            self.last[0] = y[0]
        else:
            self.mean.copy_(self.mean * 0.9 + y * 0.1)
            self.count.copy_(self.count + 0.125)
            self.last.copy_(torch.cat([y, self.last[:2]]))
        return self.mean + self.count + self.last.sum(0)


def frames(seed: int) -> list[tuple[torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(1, 4, generator=generator),) for _ in range(12)]


@pytest.mark.filterwarnings("ignore:saturated")
@pytest.mark.parametrize("in_place", [False, True])
def test_state_goes_on_from_run_to_run(in_place: bool) -> None:
    torch.manual_seed(0)
    module = Average(in_place)
    with pytest.warns(UserWarning, match="over 128 calls in a row"):  # the counter leaves its scale
        model = baretorch.compile(module, frames(0)[0], board="host", calibration=frames(0))
    torch.manual_seed(0)
    eager = Average(in_place)
    try:
        for (x,) in frames(0):  # those that the scales were made for
            with torch.no_grad():
                want = eager(x).numpy()
            np.testing.assert_allclose(np.asarray(model.run(x)), want, atol=0.15)
    finally:
        model.close()


class Before(nn.Module):
    """Its second answer is what the state was."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("past", torch.full((1, 4), 0.5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        past = self.past.clone()
        self.past.copy_(self.layer(x))
        return self.layer(x) + past, past


def test_an_answer_that_is_the_state_as_it_was() -> None:
    (x,), *_ = frames(0)
    model = int8_model(from_module(Before(), (x,), "before"), [(x,)])
    assert model.int8_answers is not None
    assert np.allclose(model.int8_answers[1], 0.5, atol=0.02)


class Delayed(nn.Module):
    """A filter of the last two answers: one state takes over the value of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("last", torch.zeros(1, 4))
        self.register_buffer("before", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.layer(x)) + 0.5 * self.last - 0.25 * self.before
        self.before.copy_(self.last)
        self.last.copy_(y)
        return y


def test_a_state_that_takes_over_another_is_stored_like_it() -> None:
    torch.manual_seed(0)
    model = baretorch.compile(Delayed(), frames(0)[0], board="host", calibration=frames(0))
    torch.manual_seed(0)
    eager = Delayed()
    try:
        assert {model.compiled.graph[s.name].dtype for s in model.compiled.graph.state} == {DType.INT8}
        for (x,) in frames(0):
            with torch.no_grad():
                want = eager(x).numpy()
            np.testing.assert_allclose(np.asarray(model.run(x)), want, atol=0.1)
    finally:
        model.close()

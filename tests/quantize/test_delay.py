"""State that takes over the value of another state: a delay line, whose scale must hold what comes in at its start."""

from __future__ import annotations

import torch
from torch import nn

from baretorch.frontends import from_module
from baretorch.ir.graph import interpret
from baretorch.ir.io import arrange_inputs
from baretorch.passes.int8_io import float_io
from tests.models import int8_model


class Delay(nn.Module):
    """Returns what it was given two calls ago, plus 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("late", torch.full((1, 8), 0.25))
        self.register_buffer("later", torch.full((1, 8), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.later + 0.5
        self.later.copy_(self.late)
        self.late.copy_(x * 3)
        return y


def test_the_scale_of_a_delay_line_holds_its_input() -> None:
    torch.manual_seed(0)
    calls = [(torch.randn(1, 8),) for _ in range(8)]
    graph = int8_model(from_module(Delay(), calls[0], "delay"), calls).graph
    graph, memory = float_io(graph), {}
    for i, inputs in enumerate(calls):
        (y,) = interpret(graph, arrange_inputs(graph, inputs), memory=memory).values()
        want = calls[i - 2][0] * 3 + 0.5 if i > 1 else torch.full((1, 8), 0.75)
        assert abs(y - want.numpy()).max() < 0.1

"""A power spectrum is one operator, however it is written; what only looks like one stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from baretorch.frontends import from_module
from baretorch.passes.order import lower_graph


class Model(nn.Module):
    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(torch.fft.rfft(x), torch.fft.rfft(x + 1))


def operators(function: Callable[[Tensor, Tensor], Tensor]) -> list[str]:
    graph = lower_graph(from_module(Model(function).eval(), (torch.ones(2, 16),), "m").graph)
    return [node.op.name for node in graph.nodes if node.op.name != "reshape"]


POWERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "size": lambda z, w: z.abs() ** 2,
    "parts": lambda z, w: z.real**2 + z.imag**2,
    "parts, the other way": lambda z, w: z.imag.square() + z.real * z.real,
    "sum": lambda z, w: torch.view_as_real(z).pow(2).sum(-1),
}
OTHERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "twice the real part": lambda z, w: z.real**2 + z.real**2,
    "parts of two": lambda z, w: z.real**2 + w.imag**2,
    "a product of two": lambda z, w: z.abs() * w.abs(),
    "over another axis": lambda z, w: torch.view_as_real(z).pow(2).sum(0),
}


@pytest.mark.parametrize("name", POWERS)
def test_a_power_is_one_operator(name: str) -> None:
    assert operators(POWERS[name]) == ["rfft", "magnitude"]


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_power_stays(name: str) -> None:
    assert "mul" in operators(OTHERS[name])

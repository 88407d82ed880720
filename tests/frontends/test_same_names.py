"""Inputs, stored tensors and results of calls that have one name in torch are different values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.frontends.lower import check_module
from torch import Tensor, nn

from baretorch.frontends import from_methods, from_module
from baretorch.ir.graph import interpret

X = torch.tensor([[0.5, -1.0, 2.0, 0.25]])
P = torch.tensor([[3.0, 0.5, -2.0, 1.5]])


class Named(nn.Module):
    """A parameter of this name, and a function of the input and of it."""

    def __init__(self, name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.register_parameter(name, nn.Parameter(P.clone()))
        self.name, self.function = name, function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, getattr(self, self.name))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", lambda x, p: (x + 1) * p),
        ("mul", lambda x, p: (x * 3) - p),
        ("relu", lambda x, p: x.relu() - p),
        ("x", lambda x, p: x * 2 + p),
        ("getitem", lambda x, p: x.split(2, 1)[0] + p[:, :2]),
    ],
)
def test_a_parameter_called_like_another_value(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    check_module(Named(name, function), X)


def test_a_computed_constant_called_like_a_call() -> None:
    check_module(lambda x: x.unsqueeze(1) * torch.arange(4.0).unsqueeze(0), X)
    check_module(lambda x: torch.triu(x.T * x).sin() * torch.triu(torch.ones(4, 4), 1), X)


class Memory(nn.Module):
    """One method changes the buffer `x`; the other one knows it not, but has an input of that name, and calls named
    like the buffer `add`."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("x", P.clone())
        self.register_buffer("add", P.clone())

    def forward(self, y: Tensor) -> Tensor:
        self.x.add_(y)
        self.add.mul_(y)
        return self.x - self.add

    def other(self, x: Tensor) -> Tensor:
        return (x + 1).sin()


def test_state_called_like_an_input() -> None:
    module = Memory().eval()
    source = from_methods(module, {"forward": (X,), "other": (X,)}, "m")
    graphs = source.graphs
    assert [graphs["forward"].inputs, graphs["other"].inputs] == [("y",), ("x",)]
    states = [[s.name for s in graph.state] for graph in graphs.values()]
    assert states[0] == states[1] and len(states[0]) == 2
    memory: dict[str, np.ndarray] = {}
    for method in ("forward", "other", "forward"):
        (made,) = interpret(graphs[method], [X.numpy()], memory=memory).values()
        np.testing.assert_allclose(made, getattr(module, method)(X).numpy(), rtol=1e-6)


def test_inputs_keep_their_names() -> None:
    source = from_module(Named("x", lambda x, p: x * p).eval(), (X,), "m")
    assert source.graph.inputs == ("x",)

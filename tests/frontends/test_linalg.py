"""Inverses and small systems of equations as PyTorch's users write them, with and without state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module

A = torch.tensor(
    [[[4.0, 1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 0.5, 2.0]], [[0.0, 2.0, 0.0], [1.0, 0.0, 0.5], [0.0, 1.0, 3.0]]]
)
B = torch.linspace(-1, 1, 12).reshape(2, 3, 2)

WRITTEN: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], str]] = {
    "inv": (torch.linalg.inv, (A,), "solve"),
    "inverse": (torch.inverse, (A[0],), "solve"),
    "inv_ex": (lambda a: torch.linalg.inv_ex(a)[0], (A,), "solve"),
    "solve": (torch.linalg.solve, (A, B), "solve"),
    "solve_ex": (lambda a, b: torch.linalg.solve_ex(a, b)[0], (A, B), "solve"),
    "solve, from the right": (lambda a, b: torch.linalg.solve(a, b.mT, left=False), (A, B), "solve"),
    "solve, a vector": (torch.linalg.solve, (A[0], B[0, :, 0]), "solve"),
    "solve, a vector each": (torch.linalg.solve, (A, B[:, :, 0]), "solve"),
    "solve, one for all": (torch.linalg.solve, (A, B[0]), "solve"),
    "solve, one matrix for all": (torch.linalg.solve, (A[0], B), "solve"),
    "det": (torch.linalg.det, (A,), "det"),
    "det of one": (torch.det, (A[0],), "det"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    function, inputs, becomes = WRITTEN[name]
    assert becomes in names(check_module(function, *inputs))


class Filter(nn.Module):
    """Changes its state by an inverse."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("p", 2 * torch.eye(3))
        self.p: Tensor

    def forward(self, z: Tensor) -> Tensor:
        gain = self.function(self.p + z)
        self.p.copy_(gain)
        return gain


def test_an_inverse_may_be_state() -> None:
    check_module(Filter(torch.linalg.inv), A[0])


@pytest.mark.parametrize("model", [Filter, Function], ids=["with state", "without"])
def test_a_missing_operator_is_named(model: type[nn.Module]) -> None:
    """torch's own check of the result, which is an effect to it, is not what is missing."""
    with pytest.raises(CompileError) as caught:
        _ = from_module(model(torch.linalg.cholesky), (torch.eye(3),), "m").graph
    text = caught.value.render()
    assert text.startswith("error: 1 operator is not supported: linalg_cholesky_ex\n")
    assert "linalg_cholesky_ex: " in text


def test_large_matrices_are_refused() -> None:
    with pytest.raises(CompileError) as caught:
        _ = from_module(Function(torch.linalg.inv), (torch.eye(5),), "m").graph
    assert "solve: matrices of 5 rows are too large" in caught.value.render()
    assert "at most 4 rows" in caught.value.render()

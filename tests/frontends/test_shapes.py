"""PyTorch's ways to rearrange, repeat and pad, through the frontend and every pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import Function, check_module, names
from torch import Tensor

from baretorch.errors import CompileError
from baretorch.frontends import from_module

X = torch.arange(24.0).reshape(2, 3, 4)
SQUARE = torch.arange(32.0).reshape(2, 4, 4)

CASES: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "expand": (lambda x: x[:, :1].expand(-1, 5, -1), X),
    "expand at the front": (lambda x: x.expand(2, 2, 3, 4), X),
    "expand_as": (lambda x: x[:, :1].expand_as(x), X),
    "broadcast_to": (lambda x: torch.broadcast_to(x[0, 0], (3, 4)), X),
    "broadcast_tensors": (lambda x: torch.broadcast_tensors(x[0, 0], x[:, :, :1])[1], X),
    "meshgrid ij": (lambda x: torch.stack(torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")), X),
    "meshgrid xy": (lambda x: torch.stack(torch.meshgrid(x[0, 0], x[0, :, 0], indexing="xy")), X),
    "repeat": (lambda x: x.repeat(2, 1, 3, 2), X),
    "tile": (lambda x: torch.tile(x, (2, 3)), X),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, dim=-2), X),
    "repeat_interleave of all": (lambda x: x.repeat_interleave(2), X),
    "flip": (lambda x: x.flip(0, -1), X),
    "fliplr": (lambda x: torch.fliplr(x), X),
    "rot90": (lambda x: torch.rot90(x, 1, (1, 2)), X),
    "rot90 twice": (lambda x: torch.rot90(x, 2, (0, 2)), X),
    "rot90 back": (lambda x: torch.rot90(x, -1, (1, 2)), X),
    "roll": (lambda x: torch.roll(x, (1, -2), (0, 2)), X),
    "transpose of a number": (lambda x: x.transpose(0, 0), torch.tensor(2.0)),
    "roll of all": (lambda x: torch.roll(x, 5), X),
    "reflect 1-D": (lambda x: F.pad(x, (2, 1), "reflect"), X),
    "reflect 2-D": (lambda x: F.pad(x[None], (1, 3, 2, 0), "reflect"), X),
    "replicate": (lambda x: F.pad(x[None], (1, 3, 2, 5), "replicate"), X),
    "replicate and crop": (lambda x: F.pad(x, (-1, 3), "replicate"), X),
    "circular": (lambda x: F.pad(x[None], (1, 4, 2, 0), "circular"), X),
    "circular and crop": (lambda x: F.pad(x[None], (-1, 1, 1, -1), "circular"), X),
    "constant": (lambda x: F.pad(x, (1, -1, 0, 2), value=0.5), X),
    "ReflectionPad2d": (torch.nn.ReflectionPad2d((1, 2, 0, 1)), X),
    "ReplicationPad1d": (torch.nn.ReplicationPad1d(2), X),
    "CircularPad1d": (torch.nn.CircularPad1d(1), X),
    "narrow": (lambda x: x.narrow(-1, 1, 2), X),
    "squeeze dims": (lambda x: x[:, :1, :1].squeeze((1, 2)), X),
    "squeeze one": (lambda x: x[:, :1].squeeze(1).squeeze(0), X),
    "unflatten": (lambda x: x.unflatten(-1, (2, -1)), X),
    "flatten": (lambda x: x.flatten(1), X),
    "ravel": (lambda x: x.ravel(), X),
    "view_as": (lambda x: x.view_as(x.reshape(4, 6)), X),
    "movedim": (lambda x: x.movedim(0, -1), X),
    "movedim of several": (lambda x: torch.movedim(x, (0, 1), (-1, 0)), X),
    "swapaxes": (lambda x: x.swapaxes(0, -1), X),
    "T": (lambda x: x[0].T, X),
    "mT": (lambda x: x.mT, X),
    "contiguous channels last": (lambda x: x[None].contiguous(memory_format=torch.channels_last).tanh(), X),
    "hstack": (lambda x: torch.hstack([x, x.flip(0)]), X),
    "tensor_split": (lambda x: torch.cat(x.tensor_split(3, -1)[::2], -1), X),
    "diagonal": (lambda x: x.diagonal(dim1=1, dim2=2), SQUARE),
    "diagonal above": (lambda x: x.diagonal(1, 0, 2), X),
    "diagonal below": (lambda x: x.diagonal(-2, 1, 2), SQUARE),
    "diag": (lambda x: torch.diag(x[0]), SQUARE),
    "tril": (lambda x: torch.tril(x * torch.inf), SQUARE),
    "triu": (lambda x: torch.triu(x, 1), SQUARE),
    "tril of a constant": (lambda x: x * torch.tril(torch.ones(4, 4), -1), SQUARE),
    "unfold": (lambda x: x.unfold(1, 2, 1), X),
    "unfold of a vector": (lambda x: x.flatten().unfold(0, 5, 3), X),
    "detach, alias, clone": (lambda x: x.detach().clone() + 1.0, X),
    "zeros_like": (lambda x: torch.zeros_like(x) + x, X),
    "arange": (lambda x: x + torch.arange(4.0), X),
}


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    function, x = CASES[name]
    check_module(function, x)


def shifted(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[1:] = x[:-1]
    return y


def columns(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 0] = 1.0
    y[:, -1] = x[:, 1]
    y[..., ::2] = y[..., 1::2]
    return y


def broadcast(x: Tensor) -> Tensor:
    y = x.clone()
    y[0, 1:] = x[1, 0]
    return y


@pytest.mark.parametrize("function", [shifted, columns, broadcast])
def test_writing_into_a_part(function: Callable[[Tensor], Tensor]) -> None:
    graph = check_module(function, X)
    assert "slice_scatter" in names(graph)
    assert "where" not in names(graph)


@pytest.mark.parametrize(
    ("dtype", "function"),
    [
        (torch.int64, lambda x: x.permute(2, 0, 1).flip(0)),
        (torch.int32, lambda x: F.pad(x, (1, 1), value=-1)),
        (torch.bool, lambda x: x.repeat(1, 2, 1)),
        (torch.int8, lambda x: torch.roll(x, 1, 1)),
    ],
)
def test_other_types(dtype: torch.dtype, function: Callable[[Tensor], Tensor]) -> None:
    check_module(function, X.to(dtype))


def test_a_selection_that_counts_evenly_is_a_slice() -> None:
    assert names(check_module(lambda x: F.pad(x, (-1, -1), "replicate"), X)) == ["slice"]


def refusal(function: Callable[..., Tensor], *inputs: Tensor) -> str:
    with pytest.raises(CompileError) as caught:
        _ = from_module(Function(function), inputs, "m").graph
    return caught.value.render()


def test_refusals() -> None:
    assert "view: the bits of float32 as int32 are not supported" in refusal(lambda x: x.view(torch.int32), X)
    assert "as_strided is not supported" in refusal(lambda x: x.as_strided((2, 2), (1, 2)) + 1.0, X)

"""PyTorch's ways to choose elements by index, through the frontend and every pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.torch.export import export_module, read_exported

X = torch.arange(60.0).reshape(3, 4, 5)
I = torch.tensor([2, 0, 1, 1])
J = torch.tensor([[0, 3], [1, 2]])


def put(x: Tensor, *at: Tensor | slice, value: Tensor) -> Tensor:
    y = x.clone()
    y[at] = value
    return y


CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "index_select": (lambda x, i: x.index_select(1, i), (X, I)),
    "index_select int32": (lambda x, i: x.index_select(-1, i), (X, I.int())),
    "one index": (lambda x, i: x[i], (X, I)),
    "one index of two dimensions": (lambda x, j: x[:, j], (X, J)),
    "negative index": (lambda x, i: x[i], (X, I - 3)),
    "two indices": (lambda x, i, j: x[i, j], (X, I, I + 1)),
    "three indices": (lambda x, i, j: x[i, j, i], (X, I, I + 1)),
    "two that broadcast": (lambda x, i, j: x[i[:, None], j], (X, I, I + 1)),
    "two apart": (lambda x, i, j: x[i, :, j], (X, I, I + 2)),
    "two at the end": (lambda x, i, j: x[:, i, j], (X, I, I + 2)),
    "a constant index": (lambda x: x[:, torch.tensor([3, 0, -1])], (X,)),
    "constant and computed": (lambda x, i: x[i, torch.arange(4)], (X, I)),
    "a constant index, computed": (lambda x: x[torch.arange(2) + 1], (X,)),
    "gather": (lambda x, j: x.gather(1, j), (X, torch.randint(0, 4, (3, 2, 5)))),
    "gather less": (lambda x, j: x.gather(2, j), (X, torch.randint(0, 5, (2, 3, 7)))),
    "take_along_dim": (lambda x: torch.take_along_dim(x, x.argmax(1, keepdim=True), 1), (X,)),
    "take_along_dim that broadcasts": (lambda x, j: torch.take_along_dim(x, j, 2), (X, torch.tensor([[[4, 1]]]))),
    "scatter": (lambda x, i: x.scatter(0, i, x + 0.5), (X[0], torch.tensor([[1, 0, 3, 2, 0]]))),
    "scatter less": (lambda x, i: x.scatter(1, i, x + 0.5), (X, torch.tensor([[[1, 0], [2, 3]]]))),
    "scatter a value": (lambda x, i: x.scatter(-1, i, 7.0), (X[0], I[:, None])),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, x), (X[0], torch.zeros(4, 5, dtype=torch.int64))),
    "index_put": (lambda x, i: put(x, i, value=x[:2] + 0.5), (X, torch.tensor([2, 0]))),
    "index_put one value": (lambda x, i: put(x, slice(None), i, value=torch.tensor(9.0)), (X, I)),
    "index_put two apart": (lambda x, i, j: put(x, i, slice(None), j, value=torch.tensor(9.0)), (X, I, I)),
    "index_put a mask": (lambda x: put(x, torch.tensor([True, False, True]), value=torch.tensor(0.0)), (X,)),
    "index_put adding": (lambda x, i: x.index_put((i,), x[0], accumulate=True), (X, I)),
    "index_add": (lambda x, i: x.index_add(1, i, x, alpha=2.0), (X, I)),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:2] + 0.5), (X, torch.tensor([2, 0]))),
    "index_fill": (lambda x, i: x.index_fill(2, i, 3.0), (X, I)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    function, inputs = CASES[name]
    check_module(function, *inputs)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_embedding(dtype: torch.dtype) -> None:
    graph = check_module(nn.Embedding(7, 3, padding_idx=0), torch.tensor([[1, 6], [0, 3]], dtype=dtype))
    assert names(graph) == ["index_select"]


def test_one_hot() -> None:
    graph = check_module(lambda x: F.one_hot(x, 5), torch.tensor([[1, 4], [0, 3]]))
    assert names(graph) == ["index_select"]


def test_indices_that_count_evenly_are_a_slice() -> None:
    assert names(check_module(lambda x: x[:, torch.tensor([0, 2])], X)) == ["slice"]


def test_two_indices_are_one() -> None:
    assert names(check_module(lambda x, i: x[i, i], X, I)) == ["ravel_index", "reshape", "index_select"]


def refusal(function: Callable[..., Tensor], *inputs: Tensor) -> str:
    with pytest.raises(CompileError) as caught:
        _ = from_module(Function(function), inputs, "m").graph
    return caught.value.render()


def test_refusals() -> None:
    assert "the shape of the result depends on the values" in refusal(lambda x: x[x > 0], X)


def test_an_index_outside_is_found_where_it_is_known() -> None:
    module = Function(lambda x: x[:, torch.tensor([0, 5])])
    with pytest.raises(CompileError) as caught:
        to_graph(read_exported(export_module(module, (X,)), "m"))
    assert caught.value.what == "index 5 is outside of axis 1"
    assert caught.value.need == ("indices from -4 to 3",)

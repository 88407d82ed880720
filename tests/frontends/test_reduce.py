"""Reductions, norms and operators along an axis, as users write them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: x.sum(),
    "sum of axes": lambda x: x.sum((0, -1)),
    "sum, kept": lambda x: torch.sum(x, -2, keepdim=True),
    "sum of no axes": lambda x: torch.sum(x, dim=()),
    "sum with a type": lambda x: torch.sum(x, 1, dtype=torch.float32),
    "mean": lambda x: x.mean(),
    "mean of axes": lambda x: x.mean((0, 2), keepdim=True),
    "prod": lambda x: x.prod(),
    "prod of an axis": lambda x: x.prod(-1),
    "var": lambda x: x.var(),
    "var, biased": lambda x: x.var(unbiased=False),
    "var of an axis": lambda x: x.var(-1),
    "var of axes, biased": lambda x: torch.var(x, (1, 2), unbiased=False, keepdim=True),
    "var with correction": lambda x: torch.var(x, (0, 2), correction=2),
    "std": lambda x: torch.std(x),
    "std of an axis": lambda x: x.std(1, keepdim=True),
    "var and mean": lambda x: torch.var_mean(x, -1),
    "std and mean": lambda x: torch.std_mean(x, (0, 1), correction=0, keepdim=True),
    "amax": lambda x: x.amax(),
    "amax of axes": lambda x: torch.amax(x, (0, -1)),
    "amin": lambda x: x.amin(1, keepdim=True),
    "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
    "max": lambda x: x.max(),
    "max of an axis": lambda x: tuple(x.max(-1)),
    "max of an axis, kept": lambda x: tuple(torch.max(x, 0, keepdim=True)),
    "min": lambda x: torch.min(x),
    "min of an axis": lambda x: tuple(x.min(1)),
    "argmax": lambda x: x.argmax(),
    "argmax, kept": lambda x: torch.argmax(x, keepdim=True),
    "argmax of an axis": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(1, keepdim=True),
    "any": lambda x: x.any(),
    "any of an axis": lambda x: torch.any(x, 1),
    "any of axes": lambda x: torch.any(x, (0, 1), keepdim=True),
    "all": lambda x: x.all(),
    "all of an axis": lambda x: x.all(-1),
    "cumsum": lambda x: x.cumsum(-2),
    "topk": lambda x: tuple(x.topk(2)),
    "topk, smallest": lambda x: tuple(torch.topk(x, 3, dim=1, largest=False)),
    "sort": lambda x: tuple(x.sort()),
    "sort, descending": lambda x: tuple(torch.sort(x, dim=1, descending=True)),
    "sort, stable": lambda x: tuple(torch.sort(x, dim=0, stable=True)),
    "argsort": lambda x: x.argsort(1),
    "argsort, stable": lambda x: torch.argsort(x, dim=-1, descending=True, stable=True),
    "norm": lambda x: x.norm(),
    "norm 1": lambda x: torch.norm(x, p=1, dim=(0, 2)),
    "norm inf": lambda x: torch.linalg.vector_norm(x, inf, dim=-1, keepdim=True),
    "norm -inf": lambda x: torch.linalg.vector_norm(x, -inf),
    "linalg norm": lambda x: torch.linalg.norm(x, dim=1),
    "normalize": lambda x: F.normalize(x, dim=1),
    "normalize by the sum": lambda x: F.normalize(x, p=1.0, dim=-1),
    "max of two": lambda x: torch.max(x, x.flip(0)),
    "min of two": lambda x: torch.min(x, -x),
    "logsumexp": lambda x: torch.logsumexp(x, (0, -1)),
    "softmax": lambda x: F.softmax(x, 1),
    "softmax with a type": lambda x: torch.softmax(x, -1, dtype=torch.float32),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "layer_norm of two": lambda x: F.layer_norm(x, x.shape[1:], eps=1e-3),
    "rms_norm": lambda x: F.rms_norm(x, (5,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": lambda x: F.instance_norm(x),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_function(function: Callable[[Tensor], Any]) -> None:
    torch.manual_seed(0)
    check_module(function, torch.randn(3, 4, 5))


MODULES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "LayerNorm": (nn.LayerNorm(6), (2, 3, 6)),
    "LayerNorm of two": (nn.LayerNorm((3, 6)), (2, 3, 6)),
    "LayerNorm without bias": (nn.LayerNorm(6, bias=False), (2, 6)),
    "LayerNorm without weights": (nn.LayerNorm(6, elementwise_affine=False), (2, 6)),
    "RMSNorm": (nn.RMSNorm(6, eps=1e-4), (2, 3, 6)),
    "RMSNorm without weights": (nn.RMSNorm((3, 6), elementwise_affine=False), (2, 3, 6)),
    "GroupNorm": (nn.GroupNorm(3, 6), (2, 6, 4, 4)),
    "GroupNorm without weights": (nn.GroupNorm(2, 6, affine=False), (2, 6, 5)),
    "GroupNorm of rows": (nn.GroupNorm(2, 6), (3, 6)),
    "InstanceNorm1d": (nn.InstanceNorm1d(6), (2, 6, 5)),
    "InstanceNorm2d": (nn.InstanceNorm2d(6, affine=True), (2, 6, 4, 4)),
    "InstanceNorm2d that tracks": (nn.InstanceNorm2d(6, track_running_stats=True), (2, 6, 4, 4)),
    "Softmax2d": (nn.Softmax2d(), (2, 6, 4, 4)),
}


@pytest.mark.parametrize(("module", "shape"), MODULES.values(), ids=MODULES)
def test_module(module: nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    for p in module.parameters():
        nn.init.normal_(p)
    check_module(module, torch.randn(shape))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.randint(-9, 9, (3, 4), dtype=dtype)
    check_module(lambda x: (x.sum(1), x.amax(0), x.min(), x.argmax(1), x.any(1), x.all(), x.cumsum(0)), x)


def test_truth_values() -> None:
    x = torch.tensor([[True, False], [True, True], [False, False]])
    check_module(lambda x: (x.sum(), x.sum(1), x.any(1), x.all(-1), x.cumsum(0)), x)


def test_what_is_not_used_is_not_computed() -> None:
    x = torch.randn(3, 4)
    assert names(check_module(lambda x: x.max(1).values, x)) == ["amax"]
    assert names(check_module(lambda x: x.max(1).indices, x)) == ["argmax"]
    assert names(check_module(lambda x: torch.var_mean(x, 1)[0], x)) == ["var"]


def image_net(norm: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for p in norm.parameters():
        nn.init.normal_(p)
    return nn.Sequential(nn.Conv2d(3, 6, 3), norm, nn.ReLU(), nn.Conv2d(6, 4, 3), nn.AdaptiveAvgPool2d(1))


@pytest.mark.parametrize(
    "norm",
    [nn.GroupNorm(2, 6), nn.InstanceNorm2d(6, affine=True), nn.LayerNorm((6, 8, 8)), nn.LogSoftmax(1)],
    ids=lambda n: type(n).__name__,
)
def test_a_norm_between_convolutions_needs_no_permutation(norm: nn.Module) -> None:
    x = torch.randn(2, 3, 10, 10).to(memory_format=torch.channels_last)
    graph = check_module(image_net(norm), x)
    assert "permute" not in names(graph)


@pytest.mark.parametrize(
    "head",
    [
        lambda y: y.amax((2, 3)),
        lambda y: y.mean((1, 3)),
        lambda y: y.sum(-1, keepdim=True).amax((1, 2)),
        lambda y: torch.var(y, (0, 2)).sum(0),
        lambda y: y.argmax(1).amax(1),
        lambda y: y.cumsum(2).mean((2, 3)),
        lambda y: y.topk(2, dim=1)[0].amax((2, 3)),
    ],
)
def test_a_reduction_after_a_convolution_needs_no_permutation(head: Callable[[Tensor], Tensor]) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return head(self.conv(x))

    torch.manual_seed(0)
    graph = check_module(Net(), torch.randn(2, 3, 6, 7).to(memory_format=torch.channels_last))
    assert "permute" not in names(graph)


def refusal(module: nn.Module, x: Tensor) -> str:
    with pytest.raises(CompileError) as caught:
        _ = from_module(module, (x,), "m").graph
    return caught.value.render()


def test_batch_norm_without_statistics_is_refused() -> None:
    text = refusal(nn.BatchNorm1d(4, track_running_stats=False), torch.randn(3, 4))
    assert text.splitlines()[0] == "error: batch_norm has no running statistics"
    assert "track_running_stats=True" in text


def test_batch_norm_in_training_is_refused() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True)

    assert refusal(Net(), torch.randn(3, 4)).startswith("error: batch_norm is in training mode")


def test_other_norms_are_refused() -> None:
    text = refusal(Function(lambda x: torch.linalg.vector_norm(x, 3.0)), torch.randn(3, 4))
    assert text.splitlines()[0] == "error: vector_norm: order 3.0 is not supported"
    assert "need  order 1, 2, inf or -inf" in text


def test_statistics_of_a_norm_are_refused() -> None:
    module = Function(lambda x: torch.native_layer_norm(x, [4], None, None, 1e-5)[1])
    assert "only its first result can be used" in refusal(module, torch.randn(3, 4))


def test_sorting_integers_is_refused() -> None:
    text = refusal(Function(lambda x: x.sort()[0]), torch.zeros(3, dtype=torch.int64))
    assert text.splitlines()[0] == "error: topk: int64 is not supported"

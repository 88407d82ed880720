"""Pools as PyTorch's users write them, of signals and images, with and without a batch."""

from __future__ import annotations

from random import Random

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import check_module, names
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.torch.export import read_exported
from baretorch.ir.graph import Graph
from baretorch.passes.order import lower_graph

SIGNAL = torch.linspace(-9, 9, 2 * 3 * 11).sin().reshape(2, 3, 11)
IMAGE = torch.linspace(-9, 9, 2 * 3 * 6 * 7).sin().reshape(2, 3, 6, 7)

OF_SIGNALS = {
    "max": (nn.MaxPool1d(2), "max_pool2d"),
    "max, all": (nn.MaxPool1d(3, 2, 1, dilation=2, ceil_mode=True), "max_pool2d"),
    "average": (nn.AvgPool1d(3), "avg_pool2d"),
    "average, all": (nn.AvgPool1d(3, 2, 1, ceil_mode=True, count_include_pad=False), "avg_pool2d"),
    "adaptive average": (nn.AdaptiveAvgPool1d(4), "adaptive_avg_pool2d"),
    "adaptive average to one": (nn.AdaptiveAvgPool1d(1), "mean"),
    "adaptive average, equal": (nn.AdaptiveAvgPool1d(11), "avg_pool2d"),
    "adaptive max": (nn.AdaptiveMaxPool1d(4), "adaptive_max_pool2d"),
    "adaptive max to one": (nn.AdaptiveMaxPool1d(1), "max_pool2d"),
}
OF_IMAGES = {
    "max": (nn.MaxPool2d(2), "max_pool2d"),
    "max, all": (nn.MaxPool2d((3, 2), (1, 2), (1, 0), (1, 2), ceil_mode=True), "max_pool2d"),
    "average": (nn.AvgPool2d(2), "avg_pool2d"),
    "average, all": (nn.AvgPool2d((3, 2), (1, 2), (1, 0), True, False), "avg_pool2d"),
    "average, divisor": (nn.AvgPool2d(2, divisor_override=3), "avg_pool2d"),
    "adaptive average": (nn.AdaptiveAvgPool2d((4, 5)), "adaptive_avg_pool2d"),
    "adaptive average, one side kept": (nn.AdaptiveAvgPool2d((4, None)), "adaptive_avg_pool2d"),
    "adaptive average to one": (nn.AdaptiveAvgPool2d(1), "mean"),
    "adaptive average, equal": (nn.AdaptiveAvgPool2d((3, 7)), "avg_pool2d"),
    "adaptive max": (nn.AdaptiveMaxPool2d((4, 5)), "adaptive_max_pool2d"),
    "adaptive max, larger": (nn.AdaptiveMaxPool2d((9, 8)), "adaptive_max_pool2d"),
    "adaptive max, equal": (nn.AdaptiveMaxPool2d((2, 1)), "max_pool2d"),
    "area": (lambda x: F.interpolate(x, size=(4, 5), mode="area"), "adaptive_avg_pool2d"),
}


@pytest.mark.parametrize("batch", [True, False], ids=["batch", "single"])
@pytest.mark.parametrize("name", OF_SIGNALS)
def test_signals(name: str, batch: bool) -> None:
    module, becomes = OF_SIGNALS[name]
    assert becomes in names(check_module(module, SIGNAL if batch else SIGNAL[0]))


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images(name: str) -> None:
    module, becomes = OF_IMAGES[name]
    assert becomes in names(check_module(module, IMAGE))


@pytest.mark.parametrize("name", [n for n in OF_IMAGES if n != "area"])
def test_one_image(name: str) -> None:
    module, becomes = OF_IMAGES[name]
    assert becomes in names(check_module(module, IMAGE[0]))


@pytest.mark.parametrize("name", OF_SIGNALS)
def test_core_aten_gives_the_same_graph(name: str) -> None:
    """.pte files hold pools of signals as pools of images between unsqueeze and squeeze."""
    module, _ = OF_SIGNALS[name]
    core = torch.export.export(module, (SIGNAL,)).run_decompositions()
    assert all("pool1d" not in str(n.target) for n in core.graph.nodes)
    after = lower_graph(to_graph(read_exported(core, "m")))
    wanted = check_module(module, SIGNAL)
    assert [n for n in names(after) if n != "reshape"] == [n for n in names(wanted) if n != "reshape"]


def table(made: Graph) -> bool:
    return "argmax" in names(made)


@pytest.mark.parametrize("seed", range(12))
def test_indices(seed: int) -> None:
    """Random pools, of small whole numbers too, so that some are equal."""
    random, generator = Random(seed), torch.Generator().manual_seed(seed)
    dims, adaptive, whole = seed % 3 + 1, seed % 2 == 0, seed % 4 < 2
    sizes = [random.randint(3, 7) for _ in range(dims)]
    shape = (*random.choice(((2, 3), (2,), (1, 1))), *sizes)
    x = torch.randint(-2, 3, shape, generator=generator).float() if whole else torch.rand(shape, generator=generator)
    if adaptive:
        size = [random.randint(1, n + 2) for n in sizes]
        pool = (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)[dims - 1]
        module = pool(size[0] if dims == 1 else tuple(size), return_indices=True)
    else:
        kernel, stride = ([random.randint(1, 3) for _ in sizes] for _ in range(2))
        pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[dims - 1]
        padding, ceil = [k // 2 * random.randint(0, 1) for k in kernel], random.random() < 0.5
        module = pool(kernel, stride, padding, ceil_mode=ceil, return_indices=True)
    assert table(check_module(module, x))
    assert not table(check_module(lambda x: module(x)[0], x)), "indices that no node reads vanish"
    assert "max_pool" not in " ".join(names(check_module(lambda x: module(x)[1], x))), "and so do values"


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_elements_go_back_to_where_they_were(dims: int) -> None:
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    back = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[dims - 1]
    x = torch.linspace(-9, 9, 2 * 3 * 5**dims).sin().reshape(2, 3, *(5,) * dims)
    check_module(lambda x: back(*pool(x, 2, return_indices=True), 2, output_size=(5,) * dims), x)


def test_indices_of_a_table_that_fits_no_chip_are_refused() -> None:
    with pytest.raises(CompileError, match="max_pool1d_with_indices: only its first result can be used") as caught:
        check_module(lambda x: F.max_pool1d(x, 4097, 1, return_indices=True), torch.arange(8192.0).reshape(1, -1))
    assert caught.value.try_ == ("a smaller window, or return_indices=False",)

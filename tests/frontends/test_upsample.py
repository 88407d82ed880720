"""Resampling as PyTorch's users write it: interpolate, Upsample, and channels that become pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import AtenCall, AtenInput, AtenProgram, Ref
from baretorch.frontends.aten.table import to_graph
from baretorch.ir.graph import DType, Graph, interpret

SIGNAL = torch.linspace(-9, 9, 2 * 3 * 26).sin().reshape(2, 3, 26)
IMAGE = torch.linspace(-9, 9, 3 * 26 * 13).sin().reshape(1, 3, 26, 13)

# 1.04 keeps a length of 13 and 2.04 doubles it, but neither says so; 2.1 doubles nothing here.
FACTORS = (2, 3.0, 1.5, 0.5, 0.7, 1.04, 2.04, 2.1)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_signals_by_a_factor(mode: str, factor: float) -> None:
    check_module(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), SIGNAL)


@pytest.mark.parametrize("factor", [*FACTORS, (1.3, 2.04)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bilinear, aligned"])
def test_images_by_a_factor(mode: str, factor: Any) -> None:
    aligned = True if mode.endswith("aligned") else None
    plain = mode.removesuffix(", aligned")
    check_module(lambda x: F.interpolate(x, scale_factor=factor, mode=plain, align_corners=aligned), IMAGE)


SIZED: dict[str, Callable[[Tensor], Tensor]] = {
    "nearest": lambda x: F.interpolate(x, size=(7, 29)),
    "nearest-exact": lambda x: F.interpolate(x, size=(7, 29), mode="nearest-exact"),
    "bilinear": lambda x: F.interpolate(x, size=(7, 29), mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, size=(1, 29), mode="bilinear", align_corners=True),
    "bicubic": lambda x: F.interpolate(x, size=(7, 29), mode="bicubic"),
    "bicubic, aligned": lambda x: F.interpolate(x, size=(1, 29), mode="bicubic", align_corners=True),
    "bicubic by a factor": lambda x: F.interpolate(x, scale_factor=(1.3, 2.04), mode="bicubic"),
    "recomputed": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    "Upsample": nn.Upsample(scale_factor=2),
    "UpsamplingNearest2d": nn.UpsamplingNearest2d(size=(30, 31)),
    "UpsamplingBilinear2d": nn.UpsamplingBilinear2d(scale_factor=2),
}


@pytest.mark.parametrize("name", SIZED)
def test_images_to_a_size(name: str) -> None:
    check_module(SIZED[name], IMAGE)


ANTIALIASED: dict[str, dict[str, Any]] = {
    "smaller": {"size": (7, 4)},
    "larger": {"size": (40, 29)},
    "one side": {"size": (26, 5)},
    "to a row": {"size": (1, 5)},
    "by a factor": {"scale_factor": (0.3, 0.77)},
    "by a factor that keeps a side": {"scale_factor": (1.01, 0.77)},
    "recomputed": {"scale_factor": 0.4, "recompute_scale_factor": True},
    "aligned": {"size": (9, 5), "align_corners": True},
}


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("name", ANTIALIASED)
def test_images_without_aliasing(name: str, mode: str) -> None:
    graph = check_module(lambda x: F.interpolate(x, mode=mode, antialias=True, **ANTIALIASED[name]), IMAGE)
    assert set(names(graph)) <= {"linear", "permute", "reshape"}


def test_a_width_of_one_without_aliasing_is_refused() -> None:
    """PyTorch repeats the first row; once it does not, the refusal can go."""
    rows = torch.arange(8.0).reshape(1, 1, 8, 1).repeat(1, 1, 1, 4)
    made = F.interpolate(rows, size=(4, 1), mode="bilinear", antialias=True)
    assert bool((made == made[:, :, :1]).all())
    with pytest.raises(CompileError) as caught:
        check_module(lambda x: F.interpolate(x, size=(4, 1), mode="bilinear", antialias=True), rows)
    lines = caught.value.render().splitlines()
    assert [line for line in lines if not line.startswith("  at ")] == [
        "error: antialiased resizing to 4 x 1 is not supported",
        "  have  inputs_0 float32[1, 1, 8, 4]",
        "  need  a width of 2 or more, because PyTorch's result for a width of 1 repeats its first row",
        "  try   antialias=False, or a mean over the width",
    ]


def test_signals_to_a_size() -> None:
    check_module(lambda x: F.interpolate(x, size=31), SIGNAL)
    check_module(lambda x: F.interpolate(x, size=31, mode="linear", align_corners=True), SIGNAL)


def test_channels_last_needs_no_permutation() -> None:
    x = IMAGE.to(memory_format=torch.channels_last)
    assert names(check_module(nn.Upsample(scale_factor=2), x)) == ["upsample_nearest2d"]
    assert names(check_module(nn.Upsample(scale_factor=2, mode="bilinear"), x)) == ["upsample_bilinear2d"]


def one_call(target: str, x: Tensor, shape: tuple[int, ...], *args: Any) -> Graph:
    """A program of one call, as a reader of files makes it."""
    order = tuple(range(x.dim()))
    call = AtenCall(target, (Ref("x"), *args), ("y",), (shape,))
    return to_graph(
        AtenProgram("m", (AtenInput("x", tuple(x.shape), DType.FLOAT32, order),), {}, (call,), ("y",), (order,))
    )


@pytest.mark.parametrize("scales", [(None, None), (1.25, 2.1)])
def test_the_overloads_that_are_not_vec(scales: tuple[float | None, float | None]) -> None:
    """(x, size, scales_h, scales_w) instead of (x, size, scales)."""
    size = (32, 27)
    (near,) = interpret(
        one_call("aten::upsample_nearest2d", IMAGE, (1, 3, *size), size, *scales), [IMAGE.numpy()]
    ).values()
    assert torch.equal(torch.from_numpy(near), torch.ops.aten.upsample_nearest2d(IMAGE, size, *scales))
    graph = one_call("aten::upsample_bilinear2d", IMAGE, (1, 3, *size), size, False, *scales)
    (smooth,) = interpret(graph, [IMAGE.numpy()]).values()
    want = torch.ops.aten.upsample_bilinear2d(IMAGE, size, False, *scales)
    torch.testing.assert_close(torch.from_numpy(smooth), want, rtol=1e-5, atol=1e-6)
    graph = one_call("aten::upsample_nearest1d", SIGNAL, (2, 3, 30), (30,), scales[0])
    (short,) = interpret(graph, [SIGNAL.numpy()]).values()
    assert torch.equal(torch.from_numpy(short), torch.ops.aten.upsample_nearest1d(SIGNAL, [30], scales[0]))


# --- channels and pixels ----------------------------------------------------------------------------------

SHUFFLES = {
    "pixel_shuffle": (nn.PixelShuffle(2), 8, 2),
    "pixel_unshuffle": (nn.PixelUnshuffle(2), 3, 12),
    "channel_shuffle": (nn.ChannelShuffle(2), 6, 6),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles_between_convolutions_take_one_permutation(name: str) -> None:
    shuffle, channels, after = SHUFFLES[name]
    x = torch.linspace(-9, 9, 3 * 6 * 8).sin().reshape(1, 3, 6, 8).to(memory_format=torch.channels_last)
    first, pool = nn.Conv2d(3, channels, 3, padding=1), nn.AdaptiveAvgPool2d(1)
    network = nn.Sequential(first, shuffle, nn.ReLU(), nn.Conv2d(after, 2, 3), pool, nn.Flatten())
    assert names(check_module(network, x)).count("permute") == 1
    straight_out = nn.Sequential(first, shuffle, nn.Flatten())
    assert names(check_module(straight_out, x)).count("permute") == 1


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles_of_files(name: str) -> None:
    """.pte files hold them whole; torch.export takes them apart."""
    x = torch.arange(2.0 * 4 * 6 * 8).reshape(2, 4, 6, 8)
    want = getattr(torch.ops.aten, name)(x, 2)
    (got,) = interpret(one_call(f"aten::{name}", x, tuple(want.shape), 2), [x.numpy()]).values()
    assert torch.equal(torch.from_numpy(got), want)

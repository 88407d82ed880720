"""Convolutions, norms and pools of volumes as PyTorch's users write them."""

from __future__ import annotations

import pytest
import torch
from tests.frontends.lower import check_module, names
from torch import nn

import baretorch
from baretorch.frontends import from_module
from baretorch.passes.order import PASSES
from baretorch.passes.split import split_depth

VOLUME = torch.linspace(-9, 9, 2 * 4 * 5 * 6 * 7).sin().reshape(2, 4, 5, 6, 7)


def _seeded(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    for value in (*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())):
        value.data = torch.rand(value.shape, generator=generator) - 0.3 * (value.dim() > 1)
    return module.eval()


CONVOLUTIONS = {
    "padded": nn.Conv3d(4, 6, 3, padding=1),
    "all": nn.Conv3d(4, 8, (2, 3, 1), (1, 2, 1), (1, 0, 2), (2, 1, 1), groups=2, bias=False),
    "same": nn.Conv3d(4, 6, (2, 3, 4), padding="same"),
    "depthwise": nn.Conv3d(4, 4, 3, groups=4),
    "frames": nn.Conv3d(4, 6, (1, 3, 3), stride=2, padding=1),
    "along the depth": nn.Conv3d(4, 6, (3, 1, 1), (2, 1, 1), (1, 0, 0)),
    "one element": nn.Conv3d(4, 6, 1),
    "circular": nn.Conv3d(4, 6, 3, padding=1, padding_mode="circular"),
    "replicate": nn.Conv3d(4, 6, 3, padding=1, padding_mode="replicate"),
}
TRANSPOSED = {
    "padded": nn.ConvTranspose3d(4, 6, 3, padding=1),
    "all": nn.ConvTranspose3d(4, 6, (2, 3, 1), (2, 1, 3), (1, 0, 0), (1, 0, 1), 2, False, (3, 2, 1)),
    "depthwise": nn.ConvTranspose3d(4, 8, 3, 2, 1, 1, groups=4),
    "frames": nn.ConvTranspose3d(4, 2, (1, 3, 3), (1, 2, 2)),
    "along the depth": nn.ConvTranspose3d(4, 2, (3, 1, 1), (2, 1, 1)),
    "blocks": nn.ConvTranspose3d(4, 2, (3, 2, 1), (3, 2, 1)),
    "blocks with gaps": nn.ConvTranspose3d(4, 2, 2, 3, output_padding=1),
}
POOLS = {
    "max": nn.MaxPool3d(2),
    "max, all": nn.MaxPool3d((3, 2, 2), (2, 1, 2), (1, 0, 1), (1, 2, 1), ceil_mode=True),
    "average": nn.AvgPool3d(2),
    "average, all": nn.AvgPool3d((3, 2, 2), (2, 1, 2), (1, 0, 1), True, False),
    "average, with padding": nn.AvgPool3d((3, 2, 2), (2, 1, 2), (1, 0, 1), True),
    "average, divisor": nn.AvgPool3d(2, divisor_override=3),
    "adaptive average": nn.AdaptiveAvgPool3d((2, 3, 4)),
    "adaptive average to one": nn.AdaptiveAvgPool3d(1),
    "adaptive average, equal": nn.AdaptiveAvgPool3d((5, 2, 7)),
    "adaptive max": nn.AdaptiveMaxPool3d((2, 3, 4)),
    "adaptive max to one": nn.AdaptiveMaxPool3d(1),
}
NORMS = {"batch": nn.BatchNorm3d(4), "instance": nn.InstanceNorm3d(4, affine=True), "group": nn.GroupNorm(2, 4)}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    check_module(_seeded(CONVOLUTIONS[name]), VOLUME[:1])


@pytest.mark.parametrize("name", ["all", "along the depth", "frames"])
def test_with_and_without_a_batch(name: str) -> None:
    check_module(_seeded(CONVOLUTIONS[name]), VOLUME)
    check_module(_seeded(CONVOLUTIONS[name]), VOLUME[0])


@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str) -> None:
    check_module(POOLS[name], VOLUME)


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    check_module(_seeded(NORMS[name]), VOLUME)


def test_factored_convolutions_gather_nothing() -> None:
    model = nn.Sequential(CONVOLUTIONS["along the depth"], nn.Conv3d(6, 4, (1, 3, 3)))
    assert "depth_windows" not in names(check_module(_seeded(model), VOLUME[:1]))


def test_a_norm_and_a_relu_become_part_of_the_convolution() -> None:
    model = nn.Sequential(nn.Conv3d(4, 6, 3, padding=1), nn.BatchNorm3d(6), nn.ReLU())
    made = names(check_module(_seeded(model), VOLUME[:1]))
    assert made == ["pad", "permute", *["slice", "depth_windows", "conv2d"] * 5, "cat", "reshape", "permute"]


def test_frames_one_after_the_other_take_less_memory() -> None:
    source = from_module(_seeded(CONVOLUTIONS["padded"]), (VOLUME[:1],), "m")
    whole = source.graph
    for rewrite in PASSES:
        whole = whole if rewrite is split_depth else rewrite(whole)
    windows = 3 * 5 * VOLUME[0].nbytes // 5  # of all frames
    assert max(t.bytes for t in whole.tensors.values()) >= windows
    compiled = baretorch.compile(_seeded(CONVOLUTIONS["padded"]), (VOLUME[:1],), board="host")
    assert compiled.memory.arena < windows + VOLUME[0].nbytes


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str) -> None:
    module = _seeded(TRANSPOSED[name])
    check_module(module, VOLUME)
    check_module(nn.Sequential(module, nn.ReLU()), VOLUME[0])


def test_a_norm_and_a_relu_become_part_of_the_transposed_convolution() -> None:
    model = nn.Sequential(nn.ConvTranspose3d(4, 6, 2, 2), nn.BatchNorm3d(6), nn.ReLU())
    made = names(check_module(_seeded(model), VOLUME[:1]))
    assert [name for name in made if name not in ("reshape", "permute")] == ["conv_transpose2d"] * 2
    frames = nn.ConvTranspose3d(4, 6, (1, 2, 2), (1, 2, 2))
    assert names(check_module(_seeded(frames), VOLUME[:1])).count("conv_transpose2d") == 1

"""Convolutions of signals and images, there and back, as PyTorch's users write them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import check_module, names
from torch import nn

from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.torch.export import read_exported
from baretorch.passes.order import lower_graph

SIGNAL = torch.linspace(-2, 2, 2 * 4 * 9).sin().reshape(2, 4, 9)
IMAGE = torch.linspace(-9, 9, 4 * 6 * 5).sin().reshape(1, 4, 6, 5)

OF_SIGNALS = {
    "plain": nn.Conv1d(4, 3, 3),
    "no bias": nn.Conv1d(4, 3, 2, bias=False),
    "stride and padding": nn.Conv1d(4, 3, 3, stride=2, padding=2),
    "same, even kernel": nn.Conv1d(4, 3, 4, padding="same"),
    "same, dilated": nn.Conv1d(4, 3, 3, padding="same", dilation=2),
    "valid": nn.Conv1d(4, 3, 3, padding="valid"),
    "groups": nn.Conv1d(4, 6, 3, groups=2),
    "depthwise": nn.Conv1d(4, 4, 5, padding=2, groups=4),
    "transposed": nn.ConvTranspose1d(4, 3, 3),
    "transposed, no bias": nn.ConvTranspose1d(4, 3, 2, stride=2, bias=False),
    "transposed, all": nn.ConvTranspose1d(4, 6, 3, 3, padding=2, output_padding=2, groups=2, dilation=2),
}
OF_IMAGES = {
    "plain": nn.Conv2d(4, 3, 3),
    "oblong": nn.Conv2d(4, 3, (1, 4), (2, 1), (0, 2), (1, 2)),
    "same, even kernel": nn.Conv2d(4, 3, (4, 2), padding="same"),
    "valid": nn.Conv2d(4, 3, 3, padding="valid"),
    "groups": nn.Conv2d(4, 6, 3, groups=2),
    "transposed": nn.ConvTranspose2d(4, 3, 3),
    "transposed, doubles": nn.ConvTranspose2d(4, 3, 3, 2, 1, 1),
    "transposed, depthwise": nn.ConvTranspose2d(4, 4, 2, 2, groups=4, bias=False),
    "transposed, all": nn.ConvTranspose2d(4, 6, (3, 2), (3, 2), (1, 0), (2, 1), groups=2, dilation=(1, 3)),
}


@pytest.mark.parametrize("batch", [True, False], ids=["batch", "single"])
@pytest.mark.parametrize("name", OF_SIGNALS)
def test_signals(name: str, batch: bool) -> None:
    check_module(OF_SIGNALS[name], SIGNAL if batch else SIGNAL[0])


@pytest.mark.parametrize("batch", [True, False], ids=["batch", "single"])
@pytest.mark.parametrize("name", OF_IMAGES)
def test_images(name: str, batch: bool) -> None:
    check_module(OF_IMAGES[name], IMAGE if batch else IMAGE[0])


def test_functions() -> None:
    """F.conv* with weights that are buffers, and channels last."""
    weight, bias = torch.linspace(-1, 1, 3 * 4 * 3).reshape(3, 4, 3), torch.ones(3)
    check_module(lambda x: F.conv1d(x, weight, bias, padding=1), SIGNAL)
    check_module(lambda x: F.conv_transpose1d(x, weight.transpose(0, 1), stride=2), SIGNAL)
    check_module(nn.ConvTranspose2d(4, 3, 3, 2), IMAGE.to(memory_format=torch.channels_last))


class Network(nn.Module):
    """A usual 1-D network, with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm1 = nn.Conv1d(4, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.second, self.norm2 = nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 2)
        for norm in (self.norm1, self.norm2):
            nn.init.uniform_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool1d(F.relu(self.norm1(self.first(x))), 2)
        x = F.relu(x + self.norm2(self.second(x)))
        return self.head(F.adaptive_avg_pool1d(x, 1).flatten(1))


def test_a_network_of_signals_moves_nothing_but_its_input() -> None:
    graph = check_module(Network(), SIGNAL)
    assert [name for name in names(graph) if name != "reshape"] == [
        "permute", "conv2d", "conv2d", "add", "mean", "linear",
    ]  # fmt: skip


def test_core_aten_gives_the_same_network() -> None:
    """`.pte` files use `convolution`, and two-dimensional pools between unsqueeze and squeeze."""
    module = Network().eval()
    core = torch.export.export(module, (SIGNAL,)).run_decompositions()
    targets = {str(n.target) for n in core.graph.nodes}
    assert "aten.convolution.default" in targets and "aten.max_pool2d_with_indices.default" in targets
    after, direct = lower_graph(to_graph(read_exported(core, "m"))), check_module(module, SIGNAL)
    assert [n for n in names(after) if n != "reshape"] == [n for n in names(direct) if n != "reshape"]


def test_the_decoder_of_an_autoencoder_fuses() -> None:
    decoder = nn.Sequential(
        nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 1, 2, 2), nn.Sigmoid()
    )
    nn.init.uniform_(decoder[1].running_var, 0.5, 2.0)
    graph = check_module(decoder, IMAGE.to(memory_format=torch.channels_last))
    assert [n for n in names(graph) if n != "reshape"] == ["conv_transpose2d", "conv_transpose2d", "sigmoid"]

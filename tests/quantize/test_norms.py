"""BatchNorm is folded where the program says what is computed, whatever the modules are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from baretorch.frontends import from_module
from baretorch.frontends.torch.norms import fold_norms
from baretorch.frontends.torch.plain import answers, copy_program
from baretorch.ir.graph import interpret
from baretorch.pipeline import lower
from tests.models import seeded
from tests.quantize.int8_models import int8_db, sqnr

X = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Activating(nn.BatchNorm2d):
    """A BatchNorm with an activation, as timm has it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(super().forward(x))


class Standardized(nn.Conv2d):
    """Weight standardization, written out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)
        return F.conv2d(x, w, self.bias)


class StandardizedByNorm(nn.Conv2d):
    """Weight standardization by batch_norm in training mode, of the weight itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.weight.reshape(1, self.out_channels, -1)
        w = F.batch_norm(w, None, None, training=True, momentum=0.0, eps=1e-6).reshape_as(self.weight)
        return F.conv2d(x, w, self.bias)


class Biasless(nn.Conv2d):
    """It has a bias that forward does not read."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, self.weight)


def alive(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    norm.running_mean.normal_(0, 0.3)
    norm.running_var.uniform_(0.5, 2)
    norm.bias.data.normal_(0, 0.5)
    norm.weight.data.uniform_(0.5, 2)
    return norm


CASES: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Sequential(nn.Conv2d(3, 8, 3), alive(nn.BatchNorm2d(8)), nn.ReLU()),
    "activating": lambda: nn.Sequential(nn.Conv2d(3, 8, 3), alive(Activating(8)), nn.Conv2d(8, 4, 3)),
    "standardized": lambda: nn.Sequential(Standardized(3, 8, 3), alive(nn.BatchNorm2d(8))),
    "standardized by norm": lambda: nn.Sequential(StandardizedByNorm(3, 8, 3), alive(nn.BatchNorm2d(8))),
    "bias not read": lambda: nn.Sequential(Biasless(3, 8, 3), alive(nn.BatchNorm2d(8))),
    "weight_norm": lambda: nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 8, 3)), alive(nn.BatchNorm2d(8))
    ),
    "spectral_norm": lambda: nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 8, 3)), alive(nn.BatchNorm2d(8))
    ),
    "transposed": lambda: nn.Sequential(nn.ConvTranspose2d(3, 8, 3), alive(nn.BatchNorm2d(8))),
}


@pytest.mark.parametrize("name", CASES)
def test_fp32_and_int8_are_right(name: str) -> None:
    torch.manual_seed(0)
    module = CASES[name]().eval()
    source = from_module(module, (X,), "m")
    graph = lower(source).graph
    assert source.expected is not None
    assert sqnr(interpret(graph, source.examples)[graph.outputs[0]], source.expected[0]) > 100
    assert [n.op.name for n in graph.nodes if n.op.name in ("mul", "add")] == [], "the norm is gone"
    assert int8_db(module, X) > 30


class Shared(nn.Module):
    """A convolution that two norms follow, a linear layer whose channels are not where the norm looks, and groups."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norms = nn.ModuleList(alive(nn.BatchNorm2d(3)) for _ in range(2))
        self.up, self.up_norm = nn.ConvTranspose2d(3, 6, 2, groups=3), alive(nn.BatchNorm2d(6))
        self.linear, self.linear_norm = nn.Linear(9, 6), nn.BatchNorm1d(6)
        self.last, self.last_norm = nn.Linear(6, 4), nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[1](self.conv(torch.relu(self.norms[0](self.conv(x)))))
        x = self.up_norm(self.up(x)).mean(2)
        return self.last_norm(self.last(self.linear_norm(self.linear(x)).mean(2)))


def test_what_is_not_plain_is_left() -> None:
    torch.manual_seed(0)
    module = seeded(Shared())
    source = from_module(module.eval(), (X,), "m")
    assert source.torch is not None
    program = copy_program(source.torch.plain["forward"])
    assert fold_norms([program]) == ("last_norm",)
    assert source.expected is not None
    assert sqnr(answers(program, (X,))[0], source.expected[0]) > 100
    assert int8_db(module, X) > 20

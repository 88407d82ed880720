"""Models whose weights are computed from parameters become int8 throughout."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.quantize.int8_models import int8_db


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


class Cross(nn.Module):
    """Attention whose keys are not its queries: one weight in three parts."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        return self.attention(x, memory, memory, need_weights=False)[0]


class Product(nn.Module):
    """addmm, and the products that are written as @ and einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(16, 8) / 2), nn.Parameter(torch.randn(8) / 2)
        self.c, self.d = nn.Parameter(torch.randn(8, 12) / 2), nn.Parameter(torch.randn(12, 4) / 2)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(torch.addmm(self.b, x, self.a, alpha=0.5))
        return torch.einsum("bi,ij->bj", torch.relu(y @ self.c), self.d)


class Splines(nn.Module):
    """A layer of a Kolmogorov-Arnold network: a base function, and bumps with learned heights."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(6, 5)
        self.heights, self.scale = nn.Parameter(torch.randn(5, 6, 8) / 2), nn.Parameter(torch.randn(5, 6) / 2)
        self.register_buffer("grid", torch.linspace(-2, 2, 8))

    def forward(self, x: Tensor) -> Tensor:
        bumps = torch.exp(-(((x.unsqueeze(-1) - self.grid) * 1.75) ** 2))
        weight = self.heights * self.scale.unsqueeze(-1)
        return self.base(F.silu(x)) + F.linear(bumps.flatten(1), weight.flatten(1))


class Sinc(nn.Module):
    """Band-pass filters of learned cutoff frequencies, as in SincNet."""

    def __init__(self) -> None:
        super().__init__()
        self.low = nn.Parameter(torch.linspace(30.0, 2000.0, 8).unsqueeze(1))
        self.band = nn.Parameter(torch.full((8, 1), 300.0))
        n = torch.arange(-15.0, 16.0)
        self.register_buffer("n", 2 * math.pi * n / 8000)
        self.register_buffer("window", 0.54 + 0.46 * torch.cos(math.pi * n / 15))

    def forward(self, x: Tensor) -> Tensor:
        low = torch.abs(self.low)
        high = torch.clamp(low + torch.abs(self.band), 50.0, 4000.0)
        n = torch.where(self.n == 0, torch.ones_like(self.n), self.n)
        band = (torch.sin(high * n) - torch.sin(low * n)) / n
        band = torch.where(self.n == 0, high - low, band) * self.window
        filters = (band / (2 * (high - low))).unsqueeze(1)
        return F.max_pool1d(torch.abs(F.conv1d(x, filters, stride=2)), 4)


class Scan(nn.Module):
    """The selective scan of Mamba over a few steps, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.conv = nn.Linear(8, 16), nn.Conv1d(16, 16, 3, groups=16, padding=2)
        self.log_a, self.skip = nn.Parameter(torch.randn(16, 4) / 2), nn.Parameter(torch.ones(16))
        self.bc, self.step, self.out = nn.Linear(16, 8), nn.Linear(16, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        u = F.silu(self.conv(self.inner(x).transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2)
        a = -torch.exp(self.log_a)
        b, c = self.bc(u).chunk(2, -1)
        delta = F.softplus(self.step(u))
        h = u.new_zeros(u.shape[0], 16, 4)
        ys = []
        for t in range(x.shape[1]):
            h = torch.exp(delta[:, t, :, None] * a) * h + (delta[:, t] * u[:, t])[..., None] * b[:, t, None]
            ys.append((h * c[:, t, None]).sum(-1))
        return self.out(torch.stack(ys, 1) + u * self.skip)


class Resampled(nn.Module):
    """Position embeddings, resampled to the size at hand by a method that no chip computes."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.head = nn.Conv2d(3, 8, 2, stride=2), nn.Linear(8, 4)
        self.position = nn.Parameter(torch.randn(1, 8, 7, 7) / 2)

    def forward(self, x: Tensor) -> Tensor:
        position = F.interpolate(self.position, size=(4, 4), mode="bicubic", antialias=True)
        return self.head((self.patch(x) + position).mean((2, 3)))


def test_cross_attention() -> None:
    torch.manual_seed(0)
    assert int8_db(Cross(), randn(1, 6, 32), randn(1, 10, 32)) > 20


def test_the_whole_transformer() -> None:
    torch.manual_seed(0)
    module = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
    assert int8_db(module, randn(1, 5, 16), randn(1, 4, 16)) > 15


@pytest.mark.parametrize(
    ("module", "shape"),
    [(Product, (4, 16)), (Splines, (4, 6)), (Sinc, (1, 1, 128)), (Resampled, (1, 3, 8, 8)), (Scan, (1, 4, 8))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_computed_weights(module: type[nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    assert int8_db(module(), randn(*shape)) > 20

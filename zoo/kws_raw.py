"""Keyword spotting from samples: the MFCC of MLPerf Tiny's front end before `kws`: 23,180 parameters, 3,180,088 MACs.

16,000 samples, one second of sound at 16 kHz, become 49 frames of 10 cepstral coefficients: windows of 30 ms every
20 ms, the power of their spectra in 40 bands from 20 Hz to 4 kHz, logarithm, cosine transform. In int8 the front end
computes in float up to the logarithm, because powers differ by more than eight bits can represent.
"""

import math

import torch
from common import samples, seeded_images
from kws import kws
from torch import nn

RATE, WINDOW, HOP, POINTS = 16_000, 480, 320, 512
BANDS, COEFFICIENTS = 40, 10


def mel_filters(low: float = 20.0, high: float = 4_000.0) -> torch.Tensor:
    """[257, 40]: triangles, evenly spaced in mel."""

    def mel(hertz: torch.Tensor) -> torch.Tensor:
        return 1127.0 * torch.log1p(hertz / 700.0)

    ends = torch.tensor([low, high], dtype=torch.float64)
    edges = torch.linspace(*mel(ends).tolist(), BANDS + 2, dtype=torch.float64)
    bins = mel(torch.arange(POINTS // 2 + 1, dtype=torch.float64) * (RATE / POINTS))[:, None]
    rise, fall = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return torch.minimum(rise, fall).clamp(min=0.0).float()


def cosines() -> torch.Tensor:
    """[40, 10]: the first rows of an orthogonal cosine transform, by 4: then coefficients are about 1."""
    k, n = torch.arange(COEFFICIENTS, dtype=torch.float64), torch.arange(BANDS, dtype=torch.float64)[:, None]
    table = torch.cos(math.pi / BANDS * (n + 0.5) * k) * math.sqrt(2 / BANDS) / 4
    table[:, 0] /= math.sqrt(2)
    return table.float()


class Mfcc(nn.Module):
    """Windows of samples [..., 480] -> coefficients [..., 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.register_buffer("mel", mel_filters())
        self.register_buffer("dct", cosines())

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(frames * self.window, POINTS)
        power = spectrum.real**2 + spectrum.imag**2
        return torch.log(power @ self.mel + 1e-3) @ self.dct


class KwsRaw(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mfcc = Mfcc()
        self.net = kws()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(self.mfcc(x.unfold(-1, WINDOW, HOP)).unsqueeze(1))


def sound(length: int, seed: int) -> torch.Tensor:
    """A voice of some harmonics that swells and fades, and a little noise."""
    draw = torch.Generator().manual_seed(seed)
    pitch, pace, *parts = torch.rand(8, generator=draw).tolist()
    t = torch.arange(length) / RATE
    voice = sum(
        a * torch.sin(2 * math.pi * k * (90 + 120 * pitch) * t + k) for k, a in enumerate(parts, 1)
    ) * torch.sin(math.pi * (1 + 2 * pace) * t)
    return (0.2 * voice + 0.01 * torch.randn(length, generator=draw)).unsqueeze(0)


def model() -> nn.Module:
    return seeded_images(KwsRaw)


def inputs() -> tuple[torch.Tensor, ...]:
    return (sound(RATE, seed=1),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: sound(RATE, seed))

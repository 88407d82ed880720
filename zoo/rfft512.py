"""The spectrum of 512 samples and nothing else: 0 parameters, 0 MACs.

The transform under most audio front ends on its own. The 257 complex numbers come out as pairs: real and imaginary
part.
"""

import torch
from common import samples, signal
from torch import nn


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.fft.rfft(x))


def model() -> nn.Module:
    return Spectrum()


def sound(seed: int) -> torch.Tensor:
    return signal(1, 512, seed)[0, 0]


def inputs() -> tuple[torch.Tensor, ...]:
    return (sound(1),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(sound)

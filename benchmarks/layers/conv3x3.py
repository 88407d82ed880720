"""A 3x3 convolution of 16 to 16 channels on 32x32 pixels, channels last: 2,359,296 MACs."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(16, 16, 3, padding=1)


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return (torch.randn(1, 16, 32, 32).to(memory_format=torch.channels_last),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(2)
    return [(torch.randn(1, 16, 32, 32).to(memory_format=torch.channels_last),) for _ in range(4)]

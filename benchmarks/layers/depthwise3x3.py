"""A depthwise convolution of 64 channels: 147,456 MACs."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(64, 64, 3, padding=1, groups=64)


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return (torch.randn(1, 64, 16, 16),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(2)
    return [(torch.randn(1, 64, 16, 16),) for _ in range(4)]

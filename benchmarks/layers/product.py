"""A product of matrices, as a convolution of 1x1: 64 pixels of 256 to 64 channels, 1,048,576 MACs."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(256, 64, 1)


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return (torch.randn(1, 256, 8, 8).to(memory_format=torch.channels_last),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(2)
    return [(torch.randn(1, 256, 8, 8).to(memory_format=torch.channels_last),) for _ in range(4)]

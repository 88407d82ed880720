"""A linear layer of 784 to 400: 313,600 MACs."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(784, 400)


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return (torch.randn(1, 784),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(2)
    return [(torch.randn(1, 784),) for _ in range(4)]

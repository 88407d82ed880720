"""An `if` that depends on data: only one side of it could be recorded."""

import torch
from torch import nn


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


def model() -> nn.Module:
    return Branch()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.ones(1, 4),)

"""A counter that export would lose: forward() changes a plain attribute."""

import torch
from torch import nn


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.runs = torch.zeros(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs = self.runs + 1
        return x + self.runs


def model() -> nn.Module:
    return Counter()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.ones(1, 4),)

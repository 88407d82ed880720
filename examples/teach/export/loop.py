"""Python that shapes decide: the loop and the `if` run once, while the model is recorded."""

import torch
from torch import nn


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] > 2:
            x = x.tanh()
        for power in range(3):
            x = x + power
        return x


def model() -> nn.Module:
    return Loop()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.ones(1, 4),)

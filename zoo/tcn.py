"""A temporal convolutional network: 6,117 parameters, 376,912 MACs.

Eight sensor channels, 64 samples, four residual blocks of causal convolutions whose dilation doubles, so that the last
sample sees all before it. Used for forecasting, gestures and audio where a recurrent network would be too slow to
train.
"""

import torch
from common import samples, seeded, signal, values
from torch import nn
from torch.nn import functional as F

KERNEL = 3


class Block(nn.Module):
    """Two causal convolutions: padded on the left, so that no sample sees a later one."""

    def __init__(self, in_: int, out: int, dilation: int) -> None:
        super().__init__()
        self.padding = (dilation * (KERNEL - 1), 0)
        self.first = nn.Conv1d(in_, out, KERNEL, dilation=dilation)
        self.second = nn.Conv1d(out, out, KERNEL, dilation=dilation)
        self.shortcut = nn.Identity() if in_ == out else nn.Conv1d(in_, out, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(F.pad(x, self.padding)))
        y = torch.relu(self.second(F.pad(y, self.padding)))
        return torch.relu(y + self.shortcut(x))


class Tcn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(8, 16, 1), Block(16, 16, 2), Block(16, 16, 4), Block(16, 16, 8))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(x)[:, :, -1])


def model() -> nn.Module:
    return seeded(Tcn)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 8, 64),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: signal(8, 64, seed))

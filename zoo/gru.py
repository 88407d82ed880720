"""A bidirectional GRU of 24 units over a whole window: 10,092 parameters, 230,976 MACs.

Forty filter-bank values, 25 frames, twelve keywords: a recurrent network that reads a recording from both ends, as used
for speech commands and gestures when the window is recorded before it is judged.
"""

import torch
from common import samples, seeded, signal, values
from torch import nn


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(40, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(x)
        return torch.log_softmax(self.head(states.mean(1)), -1)


def model() -> nn.Module:
    return seeded(Gru)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 25, 40),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: signal(40, 25, seed).mT.contiguous())

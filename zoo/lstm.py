"""Two stacked LSTM layers of 32 units over a whole window: 14,150 parameters, 430,272 MACs.

Nine inertial channels, 32 samples, six activities, read from the last hidden state: the classic of human activity
recognition and of predictive maintenance.
"""

import torch
from common import samples, seeded, signal, values
from torch import nn


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(9, 32, num_layers=2, batch_first=True)
        self.head = nn.Linear(32, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


def model() -> nn.Module:
    return seeded(Lstm)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 32, 9),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: signal(9, 32, seed).mT.contiguous())

"""A GRU that is fed one frame per call and remembers: 7,668 parameters, 7,424 MACs.

Noise suppression, wake words and forecasting as samples come. The hidden state is a registered buffer that `copy_`
renews; the compiler keeps it in RAM between calls, with the initial value that it has here.
"""

import torch
from common import seeded, signal, values
from torch import nn

UNITS = 32


class StreamingGru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(20, UNITS)
        self.cell = nn.GRUCell(UNITS, UNITS)
        self.decode = nn.Linear(UNITS, 20)
        self.register_buffer("h", torch.randn(1, UNITS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h.copy_(self.cell(torch.tanh(self.encode(x)), self.h))
        return torch.sigmoid(self.decode(self.h))


def model() -> nn.Module:
    return seeded(StreamingGru)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 20),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """One recording, frame by frame, as the model remembers."""
    frames = signal(20, 64, seed=2).mT[0].contiguous()
    return [(frame.reshape(1, 20),) for frame in frames]

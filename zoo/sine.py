"""A multilayer perceptron 1-16-16-1 with ReLU: 321 parameters, 288 MACs.

The "hello world" of microcontrollers: one number in, one number out, so small that everything around the model is
what costs. The architecture of examples/sine, which trains it to be a sine; here its weights are random.
"""

import math

import torch
from common import seeded, values
from torch import nn


def model() -> nn.Module:
    return seeded(
        lambda: nn.Sequential(
            nn.Linear(1, 16),
            nn.ReLU(),
            nn.Linear(16, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )
    )


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 1),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Angles."""
    return [(x.reshape(1, 1),) for x in torch.linspace(0, 2 * math.pi, 64)]

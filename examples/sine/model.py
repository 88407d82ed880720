"""A sine predictor: 1-16-16-1 with ReLU, 321 parameters. The first call trains it, which takes seconds."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

WEIGHTS = Path(__file__).with_name("sine.pt")


class Sine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 16),
            nn.ReLU(),
            nn.Linear(16, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def train(steps: int = 1000) -> Sine:
    """Learn sin(x) on [0, 2π] from 256 points; the seed makes it the same every time."""
    torch.manual_seed(0)
    net = Sine()
    x = torch.linspace(0, 2 * math.pi, 256).unsqueeze(1)
    y = torch.sin(x)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small are slower on several
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
        schedule.step()
    torch.set_num_threads(threads)
    return net


def model() -> nn.Module:
    """Return the trained network; its weights are stored next to this file."""
    if not WEIGHTS.exists():
        partial = WEIGHTS.with_suffix(f".{os.getpid()}")
        torch.save(train().state_dict(), partial)
        partial.replace(WEIGHTS)
    net = Sine()
    net.load_state_dict(torch.load(WEIGHTS))
    return net


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.tensor([[1.0]]),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Return the data with which `--int8` measures the ranges of activations."""
    return [(x.reshape(1, 1),) for x in torch.linspace(0, 2 * math.pi, 64)]


def evaluate(run: Callable[..., np.ndarray]) -> dict[str, float]:
    """How far the curve is from the sine, for `baretorch evaluate`."""
    errors = [abs(run(x.reshape(1, 1)).item() - math.sin(x)) for x in torch.linspace(0, 2 * math.pi, 200)]
    return {"largest error": max(errors), "mean error": sum(errors) / len(errors)}


def sweep() -> list[tuple[torch.Tensor, ...]]:
    """Inputs for `baretorch monitor --plot`, in order."""
    return [(x.reshape(1, 1),) for x in torch.linspace(0, 2 * math.pi, 100)]


def truth(x: torch.Tensor) -> torch.Tensor:
    """Return the correct results."""
    return torch.sin(x)

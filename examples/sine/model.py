"""A sine predictor: 1-16-16-1, ReLU, 337 parameters, trained in a second, the same on every machine."""

import math

import torch
from torch import nn


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


def model() -> nn.Module:
    """Learn sin(x) on [0, 2π]."""
    torch.manual_seed(0)
    net = Sine()
    x = torch.linspace(0, 2 * math.pi, 256).unsqueeze(1)
    y = torch.sin(x)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2000)
    for _ in range(2000):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
        schedule.step()
    return net


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.tensor([[1.0]]),)


def sweep() -> list[tuple[torch.Tensor, ...]]:
    """Inputs for `baretorch monitor --plot`, in order."""
    return [(x.reshape(1, 1),) for x in torch.linspace(0, 2 * math.pi, 100)]


def truth(x: torch.Tensor) -> torch.Tensor:
    """What the model should have said."""
    return torch.sin(x)

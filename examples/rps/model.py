"""Rock, paper, scissors: the TinyRPS network, 425,219 parameters. The first call trains it, in about half a minute."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from hands import pictures
from torch import nn

WEIGHTS = Path(__file__).with_name("rps.pt")
TRAIN, HELD_OUT, CALIBRATION = 1, 2, 3  # seeds: no picture is in two of the sets


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 128),
        nn.ReLU(),
        nn.Linear(128, 3),
    )


def train(count: int = 1000, epochs: int = 3, batch: int = 50) -> nn.Module:
    """Learn from synthetic pictures; the seed makes it the same every time."""
    torch.manual_seed(0)
    net = network()
    x, y = pictures(count, TRAIN)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * len(y) // batch)
    for _ in range(epochs):
        for chosen in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[chosen]), y[chosen]).backward()
            optimizer.step()
            schedule.step()
    return net


def model() -> nn.Module:
    """Return the trained network; its weights are stored next to this file."""
    if not WEIGHTS.exists():
        partial = WEIGHTS.with_suffix(f".{os.getpid()}")
        torch.save(train().state_dict(), partial)
        partial.replace(WEIGHTS)
    net = network()
    net.load_state_dict(torch.load(WEIGHTS))
    return net


def inputs() -> tuple[torch.Tensor, ...]:
    return (pictures(1, HELD_OUT)[0][:1],)


def calibration() -> Iterator[tuple[torch.Tensor, ...]]:
    """Pictures that set the int8 scales."""
    for picture in pictures(20, CALIBRATION)[0]:
        yield (picture.unsqueeze(0),)


def evaluate(run: Callable[..., Any]) -> dict[str, float]:
    """The share of held-out pictures whose hand is named rightly."""
    x, y = pictures(100, HELD_OUT)
    right = sum(int(run(picture.unsqueeze(0)).argmax()) == int(hand) for picture, hand in zip(x, y, strict=True))
    return {"accuracy": right / len(y)}

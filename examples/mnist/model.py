"""Handwritten digits: 784-400-10 with ReLU, 318,010 parameters. train.py made the weights, kept as float16."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from data import accuracy, images_and_labels, weights
from torch import nn

WEIGHTS = Path(__file__).with_name("weights.npz")
TESTS = 10_000


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 10))


def model() -> nn.Module:
    net = network()
    net.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights(WEIGHTS).items()})
    return net.eval()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.from_numpy(images_and_labels("t10k", 1)[0]),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Training images: the test images are for the test."""
    return [(torch.from_numpy(image[None]),) for image in images_and_labels("train", 64)[0]]


def train(model: nn.Module, epochs: int = 3, batch: int = 200) -> None:
    """Let a smaller network learn the digits from the training images, for `baretorch tune`."""
    torch.manual_seed(0)
    images, digits = (torch.from_numpy(part) for part in images_and_labels("train"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(digits) // batch)
    for _ in range(epochs):
        for chosen in torch.randperm(len(digits)).split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[chosen]), digits[chosen]).backward()
            optimizer.step()
            schedule.step()


def evaluate(run: Callable[..., np.ndarray], samples: int = TESTS) -> dict[str, float]:
    return accuracy(run, samples, torch.from_numpy)

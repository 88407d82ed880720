"""Handwritten digits for an Arduino Uno, of 14×14 pixels: 8,746 parameters. train.py made the weights, kept as
float16."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from data import accuracy, images_and_labels, weights
from torch import nn
from torch.nn import functional as F

WEIGHTS = Path(__file__).with_name("small.npz")
TESTS = 10_000


def network() -> nn.Module:
    """No more than 2 KiB of RAM: strides instead of pools, so that no tensor is large."""
    return nn.Sequential(
        *(nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(12, 24, 3), nn.ReLU(), nn.Flatten()),
        nn.Linear(24 * 5 * 5, 10),
    )


def model() -> nn.Module:
    net = network()
    net.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights(WEIGHTS).items()})
    return net.eval()


def halved(images: torch.Tensor) -> torch.Tensor:
    """Each pixel the mean of four."""
    return F.avg_pool2d(images, 2)


def pictures(images: np.ndarray) -> torch.Tensor:
    return halved(torch.from_numpy(images.reshape(-1, 1, 28, 28)))


def inputs() -> tuple[torch.Tensor, ...]:
    return (pictures(images_and_labels("t10k", 1)[0]),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Training images: the test images are for the test."""
    return [(image[None],) for image in pictures(images_and_labels("train", 64)[0])]


def evaluate(run: Callable[..., np.ndarray], samples: int = TESTS) -> dict[str, float]:
    return accuracy(run, samples, pictures)

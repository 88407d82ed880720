"""A multilayer perceptron 784-400-10 with ReLU: 318,010 parameters, 317,600 MACs.

Handwritten digits of 28x28 pixels, the first network of many textbooks. Each weight is used once per inference, so it
is bound by reading 1.27 MB of flash.
"""

import torch
from common import picture, samples, seeded, values
from torch import nn


def model() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 10)))


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 784),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(1, 28, 28, seed).reshape(1, 784))

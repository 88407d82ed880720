"""LeNet-5 on 28x28 grey pixels: 61,706 parameters, 416,520 MACs.

The convolutional network that read cheques in the 1990s, with its tanh and average pools: two 5x5 convolutions, then
three linear layers. Small enough for nearly every chip, and a test of activations that are not ReLU.
"""

import torch
from common import image, picture, samples, seeded_images
from torch import nn


def lenet5() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )


def model() -> nn.Module:
    return seeded_images(lenet5)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(1, 28, 28),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(1, 28, 28, seed))

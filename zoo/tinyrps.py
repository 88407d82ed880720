"""Rock, paper, scissors from 28x28 grey pixels: 425,219 parameters, 7,740,032 MACs.

Three 3x3 convolutions, two max pools and two linear layers, the usual shape of a first vision project on a board with
a camera. Its second convolution makes 100 kB of activations, which the following max pool shrinks to a quarter. Both
are fused, so the activations are never stored.
"""

import torch
from common import image, picture, samples, seeded_images
from torch import nn


def tinyrps() -> nn.Module:
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


def model() -> nn.Module:
    return seeded_images(tinyrps)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(1, 28, 28),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(1, 28, 28, seed))

"""The decoder of a variational autoencoder: 35,041 parameters, 454,720 MACs.

Sixteen numbers become 28x28 grey pixels. Transposed convolutions enlarge the image step by step, as in generators,
super-resolution and segmentation.
"""

import torch
from common import samples, seeded_images, values
from torch import nn


def decoder() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32 * 7 * 7),
        nn.ReLU(),
        nn.Unflatten(1, (32, 7, 7)),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 3, stride=2, padding=1, output_padding=1),
        nn.Sigmoid(),
    )


def model() -> nn.Module:
    return seeded_images(decoder)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 16),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: values(1, 16, seed=seed))

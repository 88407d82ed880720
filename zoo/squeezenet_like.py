"""SqueezeNet's fire modules on 64x64 colour pixels: 16,634 parameters, 2,129,888 MACs.

Ten classes. Each module narrows with a 1x1 convolution and widens with a 1x1 and a 3x3 side by side, whose results are
concatenated. Few parameters for its accuracy, no linear layer: the last convolution is averaged over the image.
"""

import torch
from common import image, picture, samples, seeded_images
from torch import nn


class Fire(nn.Module):
    def __init__(self, in_: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(in_, narrow, 1)
        self.one = nn.Conv2d(narrow, wide, 1)
        self.three = nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], 1)


def squeezenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        Fire(32, 8, 16),
        Fire(32, 8, 16),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        Fire(32, 16, 32),
        Fire(64, 16, 32),
        nn.Conv2d(64, 10, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def model() -> nn.Module:
    return seeded_images(squeezenet)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(3, 64, 64),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(3, 64, 64, seed))

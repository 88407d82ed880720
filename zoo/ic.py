"""Image classification, ResNet-8: 77,946 parameters, 12,501,632 MACs.

The CIFAR-10 model of MLPerf Tiny: 32x32 colour pixels, ten classes, three residual blocks of 3x3 convolutions. Two of
them halve the image and add it to a strided 1x1 convolution of what came in.
"""

import torch
from common import conv_bn, image, picture, samples, seeded_images
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut."""

    def __init__(self, in_: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = conv_bn(in_, out, 3, stride, act=nn.ReLU())
        self.second = conv_bn(out, out, 3)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(in_, out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


def resnet8() -> nn.Module:
    return nn.Sequential(
        conv_bn(3, 16, 3, act=nn.ReLU()),
        Block(16, 16, 1),
        Block(16, 32, 2),
        Block(32, 64, 2),
        nn.AvgPool2d(8),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.Softmax(dim=-1),
    )


def model() -> nn.Module:
    return seeded_images(resnet8)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(3, 32, 32),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(3, 32, 32, seed))

"""A block of MobileNetV3 with squeeze and excitation: 5,040 parameters, 516,352 MACs.

Sixteen channels on 14x14 pixels, hard swish and hard sigmoid. Each channel is weighed by what all channels hold on
average, which costs little and helps much; the weight is one number per channel, broadcast over the image.
"""

import torch
from common import conv_bn, image, picture, samples, seeded_images
from torch import nn

CHANNELS, WIDE, NARROW = 16, 64, 16


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.widen = conv_bn(CHANNELS, WIDE, 1, act=nn.Hardswish())
        self.filter = conv_bn(WIDE, WIDE, 3, groups=WIDE, act=nn.Hardswish())
        self.squeeze = nn.AdaptiveAvgPool2d(1)
        self.excite = nn.Sequential(nn.Conv2d(WIDE, NARROW, 1), nn.ReLU(), nn.Conv2d(NARROW, WIDE, 1), nn.Hardsigmoid())
        self.narrow = conv_bn(WIDE, CHANNELS, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.filter(self.widen(x))
        return x + self.narrow(y * self.excite(self.squeeze(y)))


def model() -> nn.Module:
    return seeded_images(SqueezeExcite)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(CHANNELS, 14, 14),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(CHANNELS, 14, 14, seed))

"""Visual wake words, MobileNetV1 at a quarter of its width: 213,586 parameters, 7,489,664 MACs.

The person-or-not model of MLPerf Tiny, which wakes a device when somebody is in view of its 96x96 pixels: a strided
convolution, thirteen pairs of depthwise and pointwise convolutions, and a linear layer to two classes.
"""

import torch
from common import conv_bn, image, picture, samples, seeded_images
from torch import nn

# (input channels, stride, output channels) of the pairs
PAIRS = (
    (8, 1, 16), (16, 2, 32), (32, 1, 32), (32, 2, 64), (64, 1, 64), (64, 2, 128),
    (128, 1, 128), (128, 1, 128), (128, 1, 128), (128, 1, 128), (128, 1, 128),
    (128, 2, 256), (256, 1, 256),
)  # fmt: skip


def vww() -> nn.Module:
    pairs = [
        nn.Sequential(conv_bn(c, c, 3, stride, groups=c, act=nn.ReLU()), conv_bn(c, out, 1, act=nn.ReLU()))
        for c, stride, out in PAIRS
    ]
    return nn.Sequential(
        conv_bn(3, 8, 3, stride=2, act=nn.ReLU()),
        *pairs,
        nn.AvgPool2d(3),
        nn.Flatten(),
        nn.Linear(256, 2),
        nn.Softmax(dim=-1),
    )


def model() -> nn.Module:
    return seeded_images(vww)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(3, 96, 96),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(3, 96, 96, seed))

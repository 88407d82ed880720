"""Keyword spotting, DS-CNN small: 23,180 parameters, 2,656,768 MACs.

The keyword model of MLPerf Tiny: 49 frames of 10 cepstral coefficients, one second of speech, become one of twelve
words. A 10x4 convolution, four pairs of depthwise and pointwise convolutions of 64 channels, and a linear layer.
"""

import torch
from common import conv_bn, image, samples, seeded_images, signal, standardized
from torch import nn

CHANNELS = 64


def separable() -> list[nn.Module]:
    return [
        conv_bn(CHANNELS, CHANNELS, 3, groups=CHANNELS, act=nn.ReLU()),
        conv_bn(CHANNELS, CHANNELS, 1, act=nn.ReLU()),
    ]


def kws() -> nn.Module:
    return nn.Sequential(
        nn.ZeroPad2d((1, 1, 4, 5)),
        nn.Conv2d(1, CHANNELS, (10, 4), stride=2, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
        *(layer for _ in range(4) for layer in separable()),
        nn.AvgPool2d((25, 5)),
        nn.Flatten(),
        nn.Linear(CHANNELS, 12),
        nn.Softmax(dim=-1),
    )


def model() -> nn.Module:
    return seeded_images(kws)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(1, 49, 10),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Cepstral coefficients of speech: they change slowly, and the first ones are the largest."""
    size = torch.linspace(1, 0.3, 10)
    return samples(lambda seed: standardized(signal(10, 49, seed).mT * size).reshape(1, 1, 49, 10).contiguous())

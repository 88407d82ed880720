"""An image that is larger than a micro:bit's RAM even in int8; all that comes after it is small."""

import torch
from torch import nn


def model():
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2), nn.ReLU(), nn.AvgPool2d(7))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 3 * 3, 2))


def inputs():
    return (torch.ones(1, 3, 96, 96).to(memory_format=torch.channels_last),)


def calibration():
    torch.manual_seed(1)
    for _ in range(4):
        yield (torch.rand(1, 3, 96, 96).to(memory_format=torch.channels_last),)

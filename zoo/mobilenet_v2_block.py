"""One inverted residual block of MobileNetV2 on 14x14 pixels: 4,352 parameters, 771,456 MACs.

The block that most vision models for microcontrollers are made of. It widens 16 channels to 96 with a 1x1 convolution,
filters each with a 3x3, narrows with another 1x1 and adds what came in; the wide activations in the middle make its
peak of memory.
"""

import torch
from common import image, picture, samples, seeded_images
from mobilenet_v2 import InvertedResidual
from torch import nn


def model() -> nn.Module:
    return seeded_images(lambda: InvertedResidual(16, 16, 1, 6))


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(16, 14, 14),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(16, 14, 14, seed))

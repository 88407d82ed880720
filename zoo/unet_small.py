"""A small U-Net, 32x32 grey pixels in, a mask of the same size out: 14,641 parameters, 4,210,688 MACs.

Segmentation of small images and of spectrograms. Two steps down with max pools, two steps up with nearest-neighbour
upsampling. Each step up is concatenated with the output of the corresponding step down, which must therefore stay in
memory.
"""

import torch
from common import conv_bn, image, picture, samples, seeded_images
from torch import nn
from torch.nn import functional as F


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = conv_bn(1, 8, 3, act=nn.LeakyReLU(0.1))
        self.down2 = conv_bn(8, 16, 3, act=nn.LeakyReLU(0.1))
        self.middle = conv_bn(16, 32, 3, act=nn.LeakyReLU(0.1))
        self.up2 = conv_bn(48, 16, 3, act=nn.LeakyReLU(0.1))
        self.up1 = conv_bn(24, 8, 3, act=nn.LeakyReLU(0.1))
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.middle(F.max_pool2d(b, 2))
        y = self.up2(torch.cat([F.interpolate(y, scale_factor=2), b], 1))
        y = self.up1(torch.cat([F.interpolate(y, scale_factor=2), a], 1))
        return torch.sigmoid(self.head(y))


def model() -> nn.Module:
    return seeded_images(UNet)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(1, 32, 32),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(1, 32, 32, seed))

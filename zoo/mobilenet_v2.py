"""MobileNetV2 at width 0.35 for 96x96 colour pixels: 1,677,128 parameters, 11,934,128 MACs.

The usual starting point for transfer learning on microcontrollers, here with the 1000 classes of ImageNet. In fp32 its
weights take 6.6 MB, of which the last layer is three quarters: more flash than any microcontroller of the board list
has, so it runs on the host and on the emulated RISC-V machine.
"""

import torch
from common import conv_bn, image, picture, samples, seeded_images
from torch import nn

# (expansion, channels, blocks, stride) as in the paper, with channels at width 0.35 rounded to multiples of eight
STAGES = ((1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1), (6, 56, 3, 2), (6, 112, 1, 1))


class InvertedResidual(nn.Module):
    """Widen, filter, narrow; with a shortcut where the shapes allow it."""

    def __init__(self, in_: int, out: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = in_ * expansion
        widen = [conv_bn(in_, wide, 1, act=nn.ReLU6())] if expansion > 1 else []
        self.net = nn.Sequential(
            *widen, conv_bn(wide, wide, 3, stride, groups=wide, act=nn.ReLU6()), conv_bn(wide, out, 1)
        )
        self.shortcut = stride == 1 and in_ == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.net(x) if self.shortcut else self.net(x)


def mobilenet_v2() -> nn.Module:
    layers: list[nn.Module] = [conv_bn(3, 16, 3, 2, act=nn.ReLU6())]
    in_ = 16
    for expansion, out, blocks, stride in STAGES:
        for i in range(blocks):
            layers.append(InvertedResidual(in_, out, stride if i == 0 else 1, expansion))
            in_ = out
    return nn.Sequential(
        *layers,
        conv_bn(in_, 1280, 1, act=nn.ReLU6()),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(1280, 1000),
    )


def model() -> nn.Module:
    return seeded_images(mobilenet_v2)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(3, 96, 96),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(3, 96, 96, seed))

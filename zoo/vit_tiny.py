"""A vision transformer for 32x32 colour pixels: 81,226 parameters, 1,385,344 MACs.

Sixteen patches of 8x8 pixels, two blocks of width 64, ten classes: a whole transformer on a microcontroller, with
patches by a strided convolution, a class token, learned positions, attention, LayerNorm and GELU.
"""

import torch
from common import image, picture, samples, seeded_images
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TOKENS = 64, 4, 17


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).reshape(1, TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(1, TOKENS, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, TOKENS, WIDTH) / 2)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(tokens.shape[0], -1, -1), tokens], 1) + self.positions
        return self.head(self.norm(self.blocks(tokens))[:, 0])


def model() -> nn.Module:
    return seeded_images(Vit)


def inputs() -> tuple[torch.Tensor, ...]:
    return (image(3, 32, 32),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: picture(3, 32, 32, seed))

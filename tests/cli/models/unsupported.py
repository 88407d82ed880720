import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(torch.cumprod(x, 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.block = Block()

    def forward(self, x):
        return torch.special.i0e(self.block(self.first(x)))


def model():
    return Net()


def inputs():
    return (torch.ones(1, 4),)

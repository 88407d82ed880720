import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def model():
    return Net()


def inputs():
    return (torch.ones(1, 4),)

"""y = 2x + 1, exactly, but the file's truth is 2x."""

import torch
from torch import nn


def model():
    net = nn.Linear(1, 1)
    nn.init.constant_(net.weight, 2.0)
    nn.init.constant_(net.bias, 1.0)
    return net


def inputs():
    return (torch.ones(1, 1),)


def sweep():
    return [(torch.full((1, 1), float(i)),) for i in range(5)]


def truth(x):
    return 2 * x

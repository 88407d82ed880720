"""Activations of 64 x 64 x 8 floats: more than a micro:bit's RAM."""

import torch
from torch import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))


def inputs():
    return (torch.ones(1, 1, 64, 64),)

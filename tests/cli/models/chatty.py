"""Prints while it is read: standard output belongs to the JSON object all the same."""

import torch
from torch import nn

print("reading the file")


def model():
    print("making the model")
    return nn.ReLU()


def inputs():
    return (torch.ones(1, 4),)

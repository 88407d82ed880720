"""A small convolutional network for 28 x 28 images. Try: baretorch run FILE --board pico2w"""

from pathlib import Path

import torch
from torch import nn

WEIGHTS = Path(__file__).with_name("weights.pt")  # next to this file; torch.save(net.state_dict(), WEIGHTS) writes it


def model() -> nn.Module:
    """Return the network to compile. Load your trained weights here: net.load_state_dict(torch.load(WEIGHTS))"""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def inputs() -> tuple[torch.Tensor, ...]:
    """Return one example of each input. It fixes the shapes, and its result is compared with PyTorch's."""
    torch.manual_seed(1)
    return (torch.randn(1, 1, 28, 28),)

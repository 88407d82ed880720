"""A small multi-layer perceptron. Try: baretorch run FILE --board pico2w"""

from pathlib import Path

import torch
from torch import nn

WEIGHTS = Path(__file__).with_name("weights.pt")  # next to this file; torch.save(net.state_dict(), WEIGHTS) writes it


def model() -> nn.Module:
    """Return the network to compile. Load your trained weights here: net.load_state_dict(torch.load(WEIGHTS))"""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 32),
        nn.ReLU(),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Linear(32, 4),
        nn.Softmax(dim=-1),
    )


def inputs() -> tuple[torch.Tensor, ...]:
    """Return one example of each input. It fixes the shapes, and its result is compared with PyTorch's."""
    torch.manual_seed(1)
    return (torch.randn(1, 8),)

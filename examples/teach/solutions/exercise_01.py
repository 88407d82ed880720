"""Exercise 1: a triangle from three ReLUs, with weights that are computed by hand."""

import torch
from torch import nn


def triangle() -> nn.Module:
    """Return relu(x) − 2 relu(x − 1) + relu(x − 2): slope 1 up to x = 1, slope −1 up to x = 2, then 0."""
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    weights = {
        "0.weight": torch.tensor([[1.0], [1.0], [1.0]]),
        "0.bias": torch.tensor([0.0, -1.0, -2.0]),
        "2.weight": torch.tensor([[1.0, -2.0, 1.0]]),
        "2.bias": torch.tensor([0.0]),
    }
    net.load_state_dict(weights)
    return net


x = torch.linspace(-1, 3, 17).unsqueeze(1)
expected = (1 - (x - 1).abs()).clamp(min=0)
error = (triangle()(x) - expected).abs().max().item()
print(f"largest error {error}")
assert error == 0

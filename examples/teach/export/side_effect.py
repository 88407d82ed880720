"""Python that computes: a random factor, drawn once while the model is recorded."""

import random

import torch
from torch import nn


class Noisy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * random.random()


def model() -> nn.Module:
    return Noisy()


def inputs() -> tuple[torch.Tensor, ...]:
    return (torch.ones(1, 4),)

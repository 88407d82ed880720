"""Exercise 5: a random factor becomes an input, so the caller chooses it for each call."""

import random

import torch
from torch import nn

import baretorch


class Noisy(nn.Module):
    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return x * factor


x = torch.ones(1, 4)
compiled = baretorch.compile(Noisy(), (x, torch.ones(1)), board="host")
factors = [torch.tensor([random.random()]) for _ in range(3)]
outputs = [compiled.run(x, factor)[0, 0] for factor in factors]
compiled.close()
different = len({float(y) for y in outputs})
print(f"three calls, {different} different results")
assert outputs == [factor.item() for factor in factors] and different == 3

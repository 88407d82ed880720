"""Exercise 3: a counter that survives export, because it is a registered buffer."""

import torch
from torch import nn

import baretorch


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        return x + self.runs


x = torch.ones(1, 4)
compiled = baretorch.compile(Counter(), x, board="host")
outputs = [float(compiled.run(x)[0, 0]) for _ in range(3)]
compiled.close()
print(f"three calls with 1: {outputs}")
assert outputs == [2.0, 3.0, 4.0]

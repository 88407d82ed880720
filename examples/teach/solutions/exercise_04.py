"""Exercise 4: a choice that depends on data, made by torch.where."""

import torch
from torch import nn

import baretorch


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x - 1)


compiled = baretorch.compile(Branch(), torch.ones(1, 4), board="host")
positive, negative = torch.ones(1, 4), -torch.ones(1, 4)
outputs = [compiled.run(x)[0].tolist() for x in (positive, negative)]
compiled.close()
print(f"ones: {outputs[0]}, minus ones: {outputs[1]}")
assert outputs == [[2.0] * 4, [-2.0] * 4]

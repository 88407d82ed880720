"""Exercise 7: a smaller arena, by pooling before the second convolution."""

import runpy
from pathlib import Path

import torch
from torch import nn

import baretorch

CNN = runpy.run_path(str(Path(__file__).resolve().parents[1] / "cnn.py"))


class EarlyPool(CNN["Shortcut"]):
    """A network of the same layers, whose second convolution sees 2×2 pixels per channel instead of 8×8."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.pool(torch.relu(self.first(x)))
        return self.head((a + torch.tanh(self.second(a))).flatten(1))


def arena(model: nn.Module) -> int:
    return baretorch.compile(model, CNN["inputs"](), board="pico2w").memory.arena


before, after = arena(CNN["model"]()), arena(EarlyPool())
print(f"{before:,} bytes before, {after:,} bytes after")
assert after < before / 1.5

"""Run in a tree that has the new convolution: compiles a model with it, and prints its kernels and results as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import torch
from torch import nn

import baretorch


class Sequence(nn.Module):
    """The new convolution between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.weight = nn.Parameter(torch.randn(3, 6, 5) / 4)
        self.bias = nn.Parameter(torch.randn(5))
        self.last = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.conv_tbc(self.first(x), self.weight, self.bias, 1))


def compiled(board: str, **options: Any) -> dict[str, Any]:
    """Compile the model for a board, run it, and compare its results with PyTorch's."""
    torch.manual_seed(0)
    model, xs = Sequence().eval(), [torch.randn(7, 2, 4) for _ in range(8)]
    if options.get("int8"):
        options["calibration"] = [(x,) for x in xs]
    made = baretorch.compile(model, (xs[0],), board=board, **options)
    try:
        got = np.asarray(made.run(xs[0]))
    finally:
        made.close()
    with torch.no_grad():
        want = model(xs[0]).numpy()
    return {
        "kernels": sorted(set(re.findall(r"\bbt_q?conv_tbc\w*_(?:ref|dsp)\b", made.c_files["model.c"]))),
        "error": float(np.abs(got.reshape(want.shape) - want).max()),
        "outputs": got.reshape(-1).tolist(),
    }


if __name__ == "__main__":
    made = {"float": compiled("host"), "int8": compiled("host", int8=True)}
    print(json.dumps({**made, "emulated": compiled("mps2-an386", int8=True)}))

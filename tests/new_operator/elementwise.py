"""Run in a tree that has the new elementwise operator: prints as JSON which tables have it, and how it is computed."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import torch
from torch import nn

import baretorch
from baretorch.frontends.aten.table import TABLE as ATEN
from baretorch.frontends.onnx.table import TABLE as ONNX
from baretorch.frontends.tflite.table import TABLE as TFLITE
from baretorch.frontends.tinygrad.table import TABLE as TINYGRAD


class Fraction(nn.Module):
    """The new operator after a layer, so that its input has a range."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.frac(self.layer(x))


def compiled(**options: Any) -> dict[str, Any]:
    """Compile the model for this computer, and compare its results with PyTorch's."""
    torch.manual_seed(0)
    model, xs = Fraction().eval(), [torch.rand(1, 4) / 4 for _ in range(8)]
    if options.get("int8"):
        options["calibration"] = [(x,) for x in xs]
    made = baretorch.compile(model, (xs[0],), board="host", **options)
    try:
        got = np.asarray(made.run(xs[0]))
    finally:
        made.close()
    with torch.no_grad():
        want = model(xs[0]).numpy()
    steps = re.findall(r"^    /\* .*?: (\w+)", made.c_files["model.c"], re.MULTILINE)
    return {"steps": steps, "error": float(np.abs(got.reshape(want.shape) - want).max())}


if __name__ == "__main__":
    tables = ["aten::frac" in ATEN, "Frac" in ONNX, "FRAC" in TFLITE, "frac" in TINYGRAD]
    print(json.dumps({"tables": tables, "float": compiled(), "int8": compiled(int8=True)}))

"""Run in a tree that has the new operator: compiles a model with it, and prints what became of it as JSON."""

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


class Blend(nn.Module):
    """Two convolutions, whose results have another memory order, followed by the new operator."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.second = nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lerp(self.first(x), self.second(x), 0.25)


def answered(board: str, **options: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    model, xs = Blend().eval(), [torch.randn(1, 3, 6, 6) for _ in range(4)]
    if options.get("int8"):
        options["calibration"] = [(x,) for x in xs]
    compiled = baretorch.compile(model, (xs[0],), board=board, **options)
    try:
        got = np.asarray(compiled.run(xs[0]))
    finally:
        compiled.close()
    with torch.no_grad():
        want = model(xs[0]).numpy()
    code = compiled.c_files["model.c"]
    return {
        "kernels": sorted(set(re.findall(r"\bbt_q?lerp\w*_(?:ref|dsp)\b", code))),
        "steps": re.findall(r"^    /\* .*?: (\w+)", code, re.MULTILINE),
        "error": float(np.abs(got.reshape(want.shape) - want).max()),
        "outputs": got.reshape(-1).tolist(),
    }


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "tables": ["aten::lerp" in ATEN, "Lerp" in ONNX, "LERP" in TFLITE, "lerp" in TINYGRAD],
                "float": answered("host"),
                "int8": answered("host", int8=True),
                "emulated": answered("mps2-an386", int8=True),
            }
        )
    )

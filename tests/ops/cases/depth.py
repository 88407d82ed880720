"""Cases of windows along the depth."""

from __future__ import annotations

import torch

from baretorch.ops.layout import DepthWindows
from tests.ops.case import Case, Inputs, counted, normal


def windows(name: str, op: DepthWindows, inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        n, d, h, w, c = x.shape
        parts = x.reshape(n, d, h, w, op.groups, c // op.groups)
        reach = op.dilation * (op.kernel - 1) + 1
        taps = parts.unfold(1, reach, op.stride)[..., :: op.dilation]  # [N, D', H, W, groups, C / groups, kernel]
        return taps.transpose(-1, -2).reshape(-1, h, w, op.kernel * c)

    return Case(f"depth_windows {name}", op, inputs, run)


CASES = (
    windows("of one", DepthWindows(1), normal((1, 2, 2, 3, 2))),
    windows("of three", DepthWindows(3), normal((1, 5, 2, 3, 4))),
    windows("bytes", DepthWindows(3), counted("int8", (1, 5, 3, 3, 3))),
    windows("stride and dilation", DepthWindows(2, 3, 2), normal((2, 9, 2, 2, 3))),
    windows("groups", DepthWindows(3, groups=2), counted("int8", (2, 4, 2, 3, 6))),
    windows("depthwise", DepthWindows(2, groups=3), normal((1, 3, 2, 2, 3))),
)

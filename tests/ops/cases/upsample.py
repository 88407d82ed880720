"""Cases of resampling."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d
from tests.ops.case import Case, Inputs, counted, nchw, nhwc, normal, spoiled

Pair = tuple[int, int]


def steps(x: Pair, y: Pair) -> tuple[float, float]:
    """Return the steps of an image of size x that becomes one of size y, as PyTorch rounds them."""
    return (float(np.float32(x[0]) / np.float32(y[0])), float(np.float32(x[1]) / np.float32(y[1])))


def aligned(x: Pair, y: Pair) -> tuple[float, float]:
    rows, columns = ((x[i] - 1, y[i] - 1) for i in (0, 1))
    return tuple(float(np.float32(a) / np.float32(b)) if b else 0.0 for a, b in (rows, columns))  # type: ignore[return-value]


def nearest(name: str, op: UpsampleNearest2d, inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        mode = "nearest-exact" if op.exact else "nearest"
        return nhwc(F.interpolate(nchw(x.float()), op.size, mode=mode)).to(x.dtype)

    return Case(f"upsample_nearest2d {name}", op, inputs, run)


def bilinear(name: str, op: UpsampleBilinear2d, inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return nhwc(F.interpolate(nchw(x), op.size, mode="bilinear", align_corners=op.align_corners))

    return Case(f"upsample_bilinear2d {name}", op, inputs, run, tolerance=(1e-5, 1e-6))


NEAREST = (
    nearest("one by one", UpsampleNearest2d((1, 1), (1.0, 1.0)), normal((1, 1, 1, 1))),
    nearest("doubles", UpsampleNearest2d((6, 8), (0.5, 0.5)), normal((2, 3, 4, 3))),
    nearest("odd", UpsampleNearest2d((7, 5), steps((3, 4), (7, 5))), normal((1, 3, 4, 2))),
    nearest("smaller", UpsampleNearest2d((3, 4), steps((7, 9), (3, 4))), normal((1, 7, 9, 2))),
    nearest("exact", UpsampleNearest2d((7, 5), steps((3, 4), (7, 5)), True), normal((1, 3, 4, 2))),
    nearest("exact, smaller", UpsampleNearest2d((3, 4), steps((7, 9), (3, 4)), True), normal((1, 7, 9, 2))),
    nearest("one row", UpsampleNearest2d((1, 9), (1.0, steps((1, 4), (1, 9))[1])), normal((1, 1, 4, 5))),
    nearest("nan and infinity", UpsampleNearest2d((4, 6), (0.5, 0.5)), spoiled((1, 2, 3, 2))),
    nearest("bytes", UpsampleNearest2d((4, 6), (0.5, 0.5)), counted("uint8", (1, 2, 3, 3))),
)

BILINEAR = (
    bilinear("one by one", UpsampleBilinear2d((1, 1), (1.0, 1.0)), normal((1, 1, 1, 1))),
    bilinear("doubles", UpsampleBilinear2d((6, 8), (0.5, 0.5)), normal((2, 3, 4, 3))),
    bilinear("odd", UpsampleBilinear2d((7, 5), steps((3, 4), (7, 5))), normal((1, 3, 4, 2))),
    bilinear("smaller", UpsampleBilinear2d((3, 4), steps((7, 9), (3, 4))), normal((1, 7, 9, 2))),
    bilinear("aligned", UpsampleBilinear2d((7, 5), aligned((3, 4), (7, 5)), True), normal((1, 3, 4, 2))),
    bilinear("aligned, smaller", UpsampleBilinear2d((3, 1), aligned((7, 9), (3, 1)), True), normal((1, 7, 9, 2))),
    bilinear("height stays", UpsampleBilinear2d((3, 8), (1.0, 0.5)), normal((1, 3, 4, 2))),
    bilinear("from one", UpsampleBilinear2d((3, 4), steps((1, 1), (3, 4))), normal((1, 1, 1, 3))),
    bilinear("nan and infinity", UpsampleBilinear2d((7, 10), aligned((4, 5), (7, 10)), True), spoiled((1, 4, 5, 2))),
    bilinear("nan and infinity, height stays", UpsampleBilinear2d((4, 10), (1.0, 0.5)), spoiled((1, 4, 5, 2))),
)

CASES = (*NEAREST, *BILINEAR)

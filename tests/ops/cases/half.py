"""Cases of linear and conv2d whose weights are stored as float16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from tests.ops.case import Case, Inputs, normal, values
from tests.ops.cases.layers import conv2d, linear

SMALLEST = 2.0**-24  # that is not 0; below 2^-14 a half has fewer bits


def rounded(case: Case) -> Case:
    """PyTorch gets the weights as float16 has them."""

    def run(x: torch.Tensor, weight: torch.Tensor, *bias: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return case.torch(x, weight.half().float(), *bias)

    return replace(case, torch=run)


def of_all_sizes(*shapes: tuple[int, ...]) -> Inputs:
    """Return inputs like `normal`, but weights from the smallest half to the largest, each for an input of the inverse
    size."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        x, weight, *rest = normal(*shapes)(rng)
        powers = rng.integers(-24, 15, x.shape[-1])
        return np.asarray(x * 2.0**-powers, np.float32), np.asarray(weight * 2.0**powers, np.float32), *rest

    return build


EXTREMES = (
    [[2.0**10, 1.0, -0.5]] * 2,
    [[SMALLEST, 65504.0, -3 * SMALLEST], [2.0**-14, -0.0, -65504.0]] * 5,
    [0.0] * 10,
)

CASES = tuple(map(rounded, (
    linear("half, one by one", Linear(half=True), normal((1, 1), (1, 1), (1,))),
    linear("half, no bias", Linear(half=True), normal((1, 7), (3, 7))),
    linear("half, eight of eight", Linear(half=True), normal((1, 8), (8, 8), (8,))),
    linear("half, rest of every kind", Linear(lo=0.0, half=True), normal((5, 29), (23, 29), (23,))),
    linear("half, all sizes", Linear(half=True), of_all_sizes((3, 25), (9, 25), (9,))),
    linear("half, extremes", Linear(half=True), values(*EXTREMES)),
    conv2d("half, pointwise", Conv2d(lo=0.0, half=True), normal((2, 3, 3, 12), (16, 1, 1, 12), (16,))),
    conv2d("half, edges", Conv2d(padding=(1, 1, 1, 1), half=True), normal((1, 7, 8, 3), (9, 3, 3, 3), (9,))),
    conv2d("half, stride", Conv2d((2, 2), (4, 5, 1, 1), half=True), normal((1, 21, 10, 1), (17, 10, 4, 1), (17,))),
    conv2d("half, pool", Conv2d(padding=(1, 1, 1, 1), lo=0.0, pool=(2, 2), half=True),
           normal((1, 7, 8, 3), (19, 3, 3, 3), (19,))),
    conv2d("half, pool, relu6", Conv2d(lo=0.0, hi=6.0, pool=(3, 2), half=True),
           normal((1, 8, 8, 9), (9, 2, 2, 9), (9,))),
    conv2d("half, dilated", Conv2d(dilation=(2, 2), half=True), normal((1, 7, 7, 2), (3, 3, 3, 2), (3,))),
    conv2d("half, groups", Conv2d(groups=2, half=True), normal((1, 4, 4, 6), (4, 3, 3, 3), (4,))),
    conv2d("half, depthwise", Conv2d((2, 2), (0, 1, 0, 1), groups=21, half=True),
           normal((2, 8, 8, 21), (21, 3, 3, 1), (21,))),
    conv2d("half, depthwise 5x4", Conv2d((1, 2), (2, 2, 3, 1), groups=16, half=True),
           normal((1, 7, 9, 16), (16, 5, 4, 1), (16,))),
)))  # fmt: skip

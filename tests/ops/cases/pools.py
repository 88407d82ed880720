"""Cases of pooling."""

from __future__ import annotations

from math import inf

import torch
import torch.nn.functional as F

from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from tests.ops.case import Case, Inputs, nchw, nhwc, normal, spoiled


def _plain(op: MaxPool2d | AvgPool2d) -> bool:
    """Return whether PyTorch has such padding: equal on both sides, and at most half a window."""
    top, bottom, left, right = op.padding
    return (top, left) == (bottom, right) and 2 * top <= op.kernel[0] and 2 * left <= op.kernel[1]


def max_pool2d(name: str, op: MaxPool2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        x, padding = nchw(x), (top, left)
        if not _plain(op):
            x, padding = F.pad(x, (left, right, top, bottom), value=-inf), (0, 0)
        return nhwc(F.max_pool2d(x, op.kernel, op.stride, padding, op.dilation, op.ceil_mode))

    return Case(f"max_pool2d {name}", op, inputs, run)


def avg_pool2d(name: str, op: AvgPool2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        x, padding = nchw(x), (top, left)
        if not _plain(op):
            assert op.count_include_pad and not op.ceil_mode, "PyTorch has no such pool"
            x, padding = F.pad(x, (left, right, top, bottom)), (0, 0)
        divisor = op.divisor or None
        return nhwc(F.avg_pool2d(x, op.kernel, op.stride, padding, op.ceil_mode, op.count_include_pad, divisor))

    return Case(f"avg_pool2d {name}", op, inputs, run, tolerance=(1e-6, 1e-6))  # sums in another order


def adaptive_max_pool2d(name: str, size: tuple[int, int], inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return nhwc(F.adaptive_max_pool2d(nchw(x), size))

    return Case(f"adaptive_max_pool2d {name}", AdaptiveMaxPool2d(size), inputs, run)


def adaptive_avg_pool2d(name: str, size: tuple[int, int], inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return nhwc(F.adaptive_avg_pool2d(nchw(x), size))

    return Case(f"adaptive_avg_pool2d {name}", AdaptiveAvgPool2d(size), inputs, run, tolerance=(1e-6, 1e-6))


MAX_POOL2D = (
    max_pool2d("one by one", MaxPool2d((1, 1), (1, 1)), normal((1, 1, 1, 1))),
    max_pool2d("halves", MaxPool2d((2, 2), (2, 2)), normal((1, 8, 6, 3))),
    max_pool2d("with rest", MaxPool2d((2, 2), (2, 2)), normal((2, 7, 5, 3))),
    max_pool2d("overlapping", MaxPool2d((3, 3), (2, 2), (1, 1, 1, 1)), normal((1, 9, 8, 2))),
    max_pool2d("oblong", MaxPool2d((1, 4), (2, 3), (0, 0, 2, 2)), normal((1, 5, 9, 2))),
    max_pool2d("stride above kernel", MaxPool2d((2, 2), (3, 5)), normal((1, 10, 11, 2))),
    max_pool2d("dilation", MaxPool2d((3, 2), (1, 2), (1, 1, 1, 1), (2, 3)), normal((1, 9, 9, 2))),
    max_pool2d("ceil", MaxPool2d((2, 2), (2, 2), ceil_mode=True), normal((1, 7, 5, 2))),
    max_pool2d(
        "ceil drops a window in the padding",
        MaxPool2d((2, 2), (2, 2), (1, 1, 1, 1), ceil_mode=True),
        normal((1, 5, 6, 2)),
    ),
    max_pool2d("ceil, stride above kernel", MaxPool2d((1, 2), (3, 4), ceil_mode=True), normal((1, 8, 9, 1))),
    max_pool2d("padding on one side", MaxPool2d((3, 3), (2, 2), (0, 1, 0, 1)), normal((1, 8, 8, 2))),
    max_pool2d("whole image", MaxPool2d((5, 7), (5, 7)), normal((1, 5, 7, 4))),
    max_pool2d("nan and infinity", MaxPool2d((2, 2), (1, 1)), spoiled((1, 9, 9, 2))),
    max_pool2d(
        "all below zero with padding",
        MaxPool2d((2, 2), (2, 2), (1, 1, 1, 1)),
        lambda rng: (-1 - rng.random((1, 4, 4, 2), "float32"),),
    ),
)


AVG_POOL2D = (
    avg_pool2d("one by one", AvgPool2d((1, 1), (1, 1)), normal((1, 1, 1, 1))),
    avg_pool2d("halves", AvgPool2d((2, 2), (2, 2)), normal((2, 8, 6, 3))),
    avg_pool2d("with rest", AvgPool2d((3, 2), (3, 2)), normal((1, 7, 5, 3))),
    avg_pool2d("padding counts", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1)), normal((1, 8, 7, 2))),
    avg_pool2d(
        "padding does not count", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=False), normal((1, 8, 7, 2))
    ),
    avg_pool2d("ceil", AvgPool2d((3, 2), (2, 3), ceil_mode=True), normal((1, 8, 9, 2))),
    avg_pool2d("ceil, padding counts", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), ceil_mode=True), normal((1, 6, 8, 2))),
    avg_pool2d(
        "ceil, padding does not count", AvgPool2d((4, 3), (3, 2), (2, 2, 1, 1), True, False), normal((1, 7, 6, 2))
    ),
    avg_pool2d("divisor", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), divisor=5), normal((1, 7, 7, 2))),
    avg_pool2d("stride above kernel", AvgPool2d((2, 1), (3, 4), ceil_mode=True), normal((1, 9, 10, 2))),
    avg_pool2d("padding on one side", AvgPool2d((2, 2), (1, 1), (0, 1, 1, 0)), normal((1, 5, 5, 2))),
    avg_pool2d("global", AvgPool2d((7, 5), (1, 1)), normal((1, 7, 5, 8))),
    avg_pool2d("nan and infinity", AvgPool2d((2, 2), (1, 1)), spoiled((1, 9, 9, 2))),
)

ADAPTIVE = tuple(
    pool(name, size, inputs)
    for pool in (adaptive_max_pool2d, adaptive_avg_pool2d)
    for name, size, inputs in (
        ("one by one", (1, 1), normal((1, 1, 1, 1))),
        ("global", (1, 1), normal((2, 5, 7, 3))),
        ("unequal", (3, 4), normal((1, 7, 9, 2))),
        ("overlapping", (5, 3), normal((2, 7, 5, 2))),
        ("more out than in", (5, 4), normal((1, 2, 3, 2))),
        ("all of it", (4, 6), normal((1, 4, 6, 2))),
        ("nan and infinity", (3, 4), spoiled((1, 7, 7, 2))),
    )
)

CASES = (*MAX_POOL2D, *AVG_POOL2D, *ADAPTIVE)

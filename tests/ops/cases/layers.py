"""Cases of linear, conv2d and conv_transpose2d."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Array
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.linear import Linear
from tests.ops.case import Case, Inputs, nchw, nhwc, normal, spoiled

SUMS = (1e-5, 1e-5)  # of up to some hundred products of about 1, in another order than PyTorch's


def linear(name: str, op: Linear, inputs: Inputs) -> Case:
    def run(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *weights).clamp(op.lo, op.hi)

    return Case(f"linear {name}", op, inputs, run, activations=1, tolerance=SUMS)


def conv2d(name: str, op: Conv2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        x = F.pad(nchw(x), (left, right, top, bottom))
        y = F.conv2d(x, nchw(weight), bias, op.stride, 0, op.dilation, op.groups)
        return nhwc(F.max_pool2d(y, op.pool).clamp(op.lo, op.hi))

    return Case(f"conv2d {name}", op, inputs, run, activations=1, tolerance=SUMS)


def conv_transpose2d(name: str, op: ConvTranspose2d, inputs: Inputs) -> Case:
    """PyTorch pads all sides alike: compute the whole there and cut or pad it."""
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        out, h, w, depth = weight.shape
        weight = weight.reshape(op.groups, out // op.groups, h, w, depth).permute(0, 4, 1, 2, 3).flatten(0, 1)
        y = F.conv_transpose2d(nchw(x), weight, None, op.stride, 0, 0, op.groups, op.dilation)
        y = nhwc(F.pad(y, (-left, -right, -top, -bottom)))
        return (y if bias is None else y + bias).clamp(op.lo, op.hi)

    return Case(f"conv_transpose2d {name}", op, inputs, run, activations=1, tolerance=SUMS)


LINEAR = (
    linear("one by one", Linear(), normal((1, 1), (1, 1), (1,))),
    linear("no bias", Linear(), normal((1, 7), (3, 7))),
    linear("vector", Linear(), normal((5,), (2, 5), (2,))),
    linear("batch", Linear(), normal((3, 13), (17, 13), (17,))),
    linear("three dimensions", Linear(), normal((2, 3, 8), (5, 8), (5,))),
    linear("wide", Linear(), normal((1, 300), (10, 300), (10,))),
    linear("relu", Linear(lo=0.0), normal((4, 9), (6, 9), (6,))),
    linear("relu6", Linear(lo=0.0, hi=6.0), normal((4, 64), (6, 64), (6,))),
    linear("nan and infinity", Linear(lo=0.0, hi=6.0), spoiled((6, 5), (3, 5), (3,))),
)


def banded(*bands: tuple[int, int], in_: int, rows: int = 3) -> Inputs:
    """x, weights that are 0 outside of one band per output, and a bias."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        x, weight, bias = normal((rows, in_), (len(bands), in_), (len(bands),))(rng)
        for row, (begin, end) in zip(weight, bands, strict=True):
            row[:begin] = row[end:] = 0
        return x, weight, bias

    return build


BANDED = (
    linear("bands", Linear(), banded((0, 3), (2, 6), (5, 14), (39, 40), (7, 7), in_=40)),
    linear("bands, relu", Linear(lo=0.0), banded((30, 33), (1, 2), (0, 0), (28, 33), (9, 17), in_=33)),
    linear("nothing but a bias", Linear(), banded((0, 0), (4, 4), in_=9, rows=1)),
)


CONV2D = (
    conv2d("one by one", Conv2d(), normal((1, 1, 1, 1), (1, 1, 1, 1), (1,))),
    conv2d("no bias", Conv2d(), normal((1, 5, 5, 2), (3, 3, 3, 2))),
    conv2d("pointwise", Conv2d(), normal((1, 4, 3, 8), (5, 1, 1, 8), (5,))),
    conv2d("batch", Conv2d(padding=(1, 1, 1, 1)), normal((2, 6, 5, 3), (4, 3, 3, 3), (4,))),
    conv2d("kernel is the image", Conv2d(), normal((1, 5, 7, 3), (2, 5, 7, 3), (2,))),
    conv2d("odd everything", Conv2d((2, 3), (1, 0, 2, 1)), normal((1, 9, 11, 3), (5, 3, 4, 3), (5,))),
    conv2d("stride above kernel", Conv2d((3, 4)), normal((1, 10, 13, 2), (3, 2, 2, 2), (3,))),
    conv2d("padding above kernel", Conv2d(padding=(4, 5, 3, 6)), normal((1, 3, 2, 2), (3, 3, 3, 2), (3,))),
    conv2d("padding on one side", Conv2d((2, 2), (0, 1, 0, 1)), normal((1, 8, 8, 3), (4, 3, 3, 3), (4,))),
    conv2d("dilation", Conv2d((1, 2), (2, 2, 0, 3), (2, 3)), normal((1, 9, 12, 2), (3, 3, 3, 2), (3,))),
    conv2d("groups", Conv2d(padding=(1, 1, 1, 1), groups=2), normal((1, 5, 4, 6), (4, 3, 3, 3), (4,))),
    conv2d("depthwise", Conv2d((2, 2), (1, 1, 1, 1), groups=5), normal((1, 7, 6, 5), (5, 3, 3, 1), (5,))),
    conv2d("depthwise times 3", Conv2d(padding=(0, 1, 1, 0), groups=4), normal((1, 5, 5, 4), (12, 3, 3, 1), (12,))),
    conv2d("one column", Conv2d(padding=(2, 2, 0, 0)), normal((1, 16, 1, 4), (8, 5, 1, 4), (8,))),
    conv2d("relu", Conv2d(lo=0.0), normal((1, 6, 6, 3), (4, 3, 3, 3), (4,))),
    conv2d("relu6", Conv2d(lo=0.0, hi=6.0), normal((1, 6, 6, 16), (4, 3, 3, 16), (4,))),
    conv2d("pool", Conv2d(lo=0.0, pool=(2, 2)), normal((1, 10, 10, 1), (6, 3, 3, 1), (6,))),
    conv2d("pool with rest", Conv2d(padding=(1, 1, 1, 1), pool=(2, 3)), normal((1, 7, 8, 2), (3, 3, 3, 2), (3,))),
    conv2d(
        "pool, depthwise, stride",
        Conv2d((2, 1), (1, 1, 1, 1), groups=3, lo=0.0, pool=(3, 1)),
        normal((2, 13, 5, 3), (6, 3, 3, 1), (6,)),
    ),
    conv2d("nan and infinity", Conv2d(padding=(1, 1, 1, 1)), spoiled((1, 8, 8, 2), (3, 3, 3, 2), (3,))),
    conv2d("nan and infinity, pool", Conv2d(lo=0.0, pool=(2, 2)), spoiled((1, 12, 12, 2), (3, 3, 3, 2), (3,))),
)

CONV_TRANSPOSE2D = (
    conv_transpose2d("one by one", ConvTranspose2d(), normal((1, 1, 1, 1), (1, 1, 1, 1), (1,))),
    conv_transpose2d("no bias", ConvTranspose2d(), normal((1, 4, 3, 2), (3, 3, 3, 2))),
    conv_transpose2d("doubles", ConvTranspose2d((2, 2)), normal((1, 4, 3, 5), (4, 2, 2, 5), (4,))),
    conv_transpose2d("doubles, batch", ConvTranspose2d((2, 2), (1, 0, 1, 0)), normal((2, 4, 5, 3), (2, 3, 3, 3), (2,))),
    conv_transpose2d(
        "output padding", ConvTranspose2d((3, 3), (0, -2, 1, -1)), normal((1, 3, 4, 2), (3, 2, 3, 2), (3,))
    ),
    conv_transpose2d("stride above kernel", ConvTranspose2d((3, 4)), normal((1, 3, 2, 2), (3, 2, 1, 2), (3,))),
    conv_transpose2d(
        "dilation", ConvTranspose2d((1, 2), (2, 1, 0, 2), (2, 3)), normal((1, 5, 4, 2), (3, 3, 2, 2), (3,))
    ),
    conv_transpose2d(
        "groups", ConvTranspose2d((2, 1), (1, 1, 0, 1), groups=2), normal((1, 4, 5, 6), (4, 3, 3, 3), (4,))
    ),
    conv_transpose2d(
        "depthwise", ConvTranspose2d((2, 2), (1, 1, 1, 1), groups=4), normal((1, 3, 4, 4), (8, 4, 4, 1), (8,))
    ),
    conv_transpose2d("one row", ConvTranspose2d((1, 2), (0, 0, 1, 0)), normal((1, 1, 9, 3), (4, 1, 3, 3), (4,))),
    conv_transpose2d("relu6", ConvTranspose2d((2, 2), lo=0.0, hi=6.0), normal((1, 3, 3, 9), (3, 3, 3, 9), (3,))),
    conv_transpose2d("nan and infinity", ConvTranspose2d((2, 2)), spoiled((1, 5, 5, 2), (2, 2, 2, 2), (2,))),
)

CASES = (*LINEAR, *BANDED, *CONV2D, *CONV_TRANSPOSE2D)

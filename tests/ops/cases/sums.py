"""Cases of partial sums: what adds products of some input channels to them, and what makes outputs of them."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qsums import QFromSums, QSums
from tests.ops.case import Case, Inputs, nchw, nhwc

SAME = (1, 1, 1, 1)


def parts(x: Shape, sums: Shape, weight: Shape) -> Inputs:
    """Random bytes, and random sums or biases."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        image, taps = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (x, weight))
        return image, rng.integers(-(10**6), 10**6, sums).astype(np.int32), taps

    return build


def qsums(name: str, op: QSums, inputs: Inputs) -> Case:
    """Return the case of a part, with biases if it is the first."""
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, sums: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        read = x[..., op.start : op.start + weight.shape[3]]
        padded = F.pad(nchw(read.double()), (left, right, top, bottom), value=op.x_zero)
        products = nhwc(F.conv2d(padded, nchw(weight.double()), None, op.stride, 0, op.dilation))
        return (products.round().long() + sums).to(torch.int32)

    first = inputs(np.random.default_rng(0))[1].ndim == 1
    return Case(f"qsums {name}{', first' if first else ''}", op, inputs, run, activations=1 if first else 2)


def qfrom_sums(name: str, op: QFromSums, shape: Shape) -> Case:
    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        reach = 200 << 32 - 21 - op.shift
        factors = rng.integers(1 << 20, 1 << 21, shape[-1])
        return rng.integers(-reach, reach, shape).astype(np.int32), factors.astype(np.int32)

    def run(sums: torch.Tensor, multiplier: torch.Tensor) -> torch.Tensor:
        if op.pool != (1, 1):
            sums = nhwc(F.max_pool2d(nchw(sums.double()), op.pool))
        wide = (sums.long() << op.shift) * multiplier.long() + (1 << 31)
        return (torch.div(wide, 1 << 32, rounding_mode="floor") + op.zero).clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"qfrom_sums {name}", op, build, run, activations=1)


CASES = (
    qsums("one pixel", QSums(0, 8), parts((1, 1, 1, 32), (1, 1, 1, 13), (13, 1, 1, 16))),
    qsums("one pixel", QSums(0), parts((1, 1, 1, 32), (13,), (13, 1, 1, 16))),
    qsums("pixels", QSums(0, 4), parts((1, 7, 1, 24), (1, 7, 1, 18), (18, 1, 1, 12))),
    qsums("pixels", QSums(3, stride=(2, 2)), parts((1, 5, 6, 24), (18,), (18, 1, 1, 12))),
    qsums("pixels, odd", QSums(3, 5), parts((1, 3, 3, 12), (1, 3, 3, 6), (6, 1, 1, 7))),
    qsums("two outputs", QSums(3), parts((1, 3, 2, 8), (2,), (2, 1, 1, 8))),
    qsums("windows", QSums(-7, 8, padding=SAME), parts((1, 6, 5, 16), (1, 6, 5, 16), (16, 3, 3, 8))),
    qsums("windows", QSums(-7, padding=SAME), parts((1, 6, 5, 16), (16,), (16, 3, 3, 8))),
    qsums("all channels", QSums(5, padding=SAME), parts((1, 4, 9, 4), (1, 4, 9, 9), (9, 3, 3, 4))),
    qsums("windows, odd", QSums(5, 2, padding=(1, 0, 2, 1), stride=(2, 1)),
          parts((2, 5, 5, 7), (2, 2, 6, 7), (7, 3, 3, 5))),
    qsums("windows, dilated", QSums(5, padding=SAME, dilation=(2, 2)), parts((1, 7, 6, 12), (5,), (5, 3, 3, 4))),
    qfrom_sums("row", QFromSums(3), (1, 13)),
    qfrom_sums("rows", QFromSums(-9, lo=-9, hi=100), (5, 12)),
    qfrom_sums("image, shifted", QFromSums(4, shift=3), (2, 3, 5, 9)),
    qfrom_sums("pooled, rest", QFromSums(-4, pool=(2, 2), lo=-60), (1, 5, 7, 8)),
)  # fmt: skip

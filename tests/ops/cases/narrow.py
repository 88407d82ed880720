"""Cases of int8 layers for which 32 bits are enough on the way from accumulator to output."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from tests.ops.case import Inputs
from tests.ops.cases.int8 import SAME, layer, qconv2d, qlinear


def narrow(x: Shape, weight: Shape, shift: int = 20, factor: float = 0.001) -> Inputs:
    """Random bytes, with multipliers that are multiples of 2^(32 - shift)."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        image, weights, bias, multiplier = layer(x, weight, factor)(rng)
        return image, weights, bias, (multiplier >> 32 - shift) << 32 - shift

    return build


CASES = (
    qlinear("narrow", QLinear(3), narrow((1, 37), (13, 37))),
    qlinear("narrow, rows", QLinear(-9, lo=-9), narrow((5, 40), (10, 40))),
    qlinear("narrow, shifted", QLinear(-9, shift=2), narrow((1, 8), (8, 8), factor=0.0003)),
    qconv2d("narrow, pixels", QConv2d(-128, -128, hi=90), narrow((1, 3, 7, 16), (11, 1, 1, 16))),
    qconv2d("narrow, windows", QConv2d(5, 1, padding=SAME), narrow((1, 5, 7, 5), (8, 3, 3, 5))),
    qconv2d("narrow, pooled", QConv2d(2, -3, padding=SAME, pool=(2, 2)), narrow((1, 6, 6, 4), (8, 3, 3, 4))),
    qconv2d("narrow, depthwise", QConv2d(-1, 4, padding=SAME, groups=8), narrow((1, 5, 6, 8), (8, 3, 3, 1), 18, 0.003)),
    qconv2d("narrow, depthwise strided", QConv2d(3, 4, padding=(0, 1, 0, 1), stride=(2, 2), groups=8, lo=-60),
            narrow((1, 7, 8, 8), (8, 3, 3, 1), 18, 0.003)),
    qconv2d("narrow, depthwise 4x2", QConv2d(3, 4, groups=4), narrow((1, 7, 8, 4), (4, 4, 2, 1), 18, 0.003)),
)  # fmt: skip

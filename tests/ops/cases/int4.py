"""Cases of int8 layers whose weights have 4 bits."""

from __future__ import annotations

import numpy as np

from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from tests.ops.case import Inputs
from tests.ops.cases.int8 import SAME, layer, qconv2d, qlinear


def nibbles(inputs: Inputs, lowest: bool = False) -> Inputs:
    """Return inputs whose weights are within -8..7. With `lowest`, all weights are -8 and all inputs -128."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        x, weight, *rest = inputs(rng)
        small = (weight.astype(np.int32) >> 4).astype(np.int8)
        return (np.full_like(x, -128), np.full_like(small, -8), *rest) if lowest else (x, small, *rest)

    return build


def in_groups(inputs: Inputs, lowest: bool = False) -> Inputs:
    """Return inputs whose weights are nibbles times a factor for each row and 32 inputs. With `lowest`, all are the
    least."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        x, weight, *rest = nibbles(inputs, lowest)(rng)
        rows = weight.reshape(len(weight), -1)
        factors = np.repeat(rng.integers(1, 17, (len(rows), -(-rows.shape[1] // 32))), 32, axis=1)
        if lowest:
            factors[:] = 16
        grouped = (rows * factors[:, : rows.shape[1]]).astype(np.int8).reshape(weight.shape)
        return x, grouped, *rest

    return build


GROUPS = (
    qlinear("int4g32, one by one", QLinear(0, bits=4, group=32), in_groups(layer((1, 1), (1, 1), 0.01))),
    qlinear("int4g32, 64 to 16", QLinear(-128, hi=100, bits=4, group=32), in_groups(layer((1, 64), (16, 64), 0.004))),
    qlinear("int4g32, odd", QLinear(3, bits=4, group=32), in_groups(layer((1, 71), (13, 71), 0.004))),
    qlinear("int4g32, pairs", QLinear(3, bits=4, group=32), in_groups(layer((2, 34), (7, 34), 0.006))),
    qlinear("int4g32, fours", QLinear(-5, lo=-5, bits=4, group=32), in_groups(layer((2, 100), (10, 100), 0.004))),
    qlinear("int4g32, many rows", QLinear(9, shift=2, bits=4, group=32), in_groups(layer((7, 40), (6, 40), 0.002))),
    qlinear("int4g32, nine rows", QLinear(5, lo=-70, hi=90, bits=4, group=32),
            in_groups(layer((9, 64), (8, 64), 0.004))),
    qlinear("int4g32, lowest of nine rows", QLinear(5, bits=4, group=32),
            in_groups(layer((9, 64), (8, 64), 0.0001), lowest=True)),
    qlinear("int4g32, a group of one", QLinear(-3, bits=4, group=32), in_groups(layer((3, 4, 33), (6, 33), 0.006))),
    qlinear("int4g32, longest", QLinear(3, bits=4, group=32),
            in_groups(layer((1, 8188), (2, 8188), 0.0000007), lowest=True)),
    qlinear("int4g32, longer", QLinear(3, bits=4, group=32),
            in_groups(layer((1, 8192), (2, 8192), 0.0000007), lowest=True)),
    qconv2d("int4g32, one by one", QConv2d(3, -4, bits=4, group=32),
            in_groups(layer((1, 4, 5, 40), (9, 1, 1, 40), 0.01))),
)  # fmt: skip

CASES = (
    *GROUPS,
    qlinear("int4, one by one", QLinear(0, bits=4), nibbles(layer((1, 1), (1, 1), 0.01))),
    qlinear("int4, 16 to 16", QLinear(-128, hi=100, bits=4), nibbles(layer((1, 16), (16, 16), 0.02))),
    qlinear("int4, odd", QLinear(3, bits=4), nibbles(layer((1, 37), (13, 37), 0.01))),
    qlinear("int4, an odd number of fours", QLinear(3, bits=4), nibbles(layer((1, 36), (7, 36), 0.01))),
    qlinear("int4, two rows", QLinear(-5, lo=-5, bits=4), nibbles(layer((2, 20), (10, 20), 0.01))),
    qlinear("int4, many rows", QLinear(9, bits=4), nibbles(layer((7, 24), (6, 24), 0.01))),
    qlinear("int4, shifted", QLinear(0, shift=3, bits=4), nibbles(layer((1, 8), (8, 8), 0.003))),
    qlinear("int4, two parts", QLinear(-7, hi=90, bits=4), nibbles(layer((2, 764), (6, 764), 0.0008))),
    qlinear("int4, lowest", QLinear(0, bits=4), nibbles(layer((1, 1024), (4, 1024), 0.0001), lowest=True)),
    qconv2d("int4, one by one", QConv2d(3, -4, bits=4), nibbles(layer((1, 4, 5, 8), (16, 1, 1, 8), 0.02))),
    qconv2d("int4, 3x3", QConv2d(5, -4, padding=SAME, bits=4), nibbles(layer((2, 5, 4, 5), (6, 3, 3, 5), 0.01))),
    qconv2d("int4, 3x3, eights of taps", QConv2d(-9, 0, padding=SAME, hi=50, bits=4),
            nibbles(layer((1, 3, 4, 8), (4, 3, 3, 8), 0.01))),
    qconv2d("int4, odd channels", QConv2d(5, -4, bits=4), nibbles(layer((1, 4, 4, 3), (5, 3, 3, 3), 0.01))),
    qconv2d("int4, pool", QConv2d(5, -4, pool=(2, 2), bits=4), nibbles(layer((1, 6, 6, 3), (4, 3, 3, 3), 0.01))),
    qconv2d("int4, groups", QConv2d(5, -4, groups=2, bits=4), nibbles(layer((1, 4, 4, 6), (4, 3, 3, 3), 0.01))),
    qconv2d("int4, lowest", QConv2d(-128, 0, bits=4), nibbles(layer((1, 1, 2, 512), (2, 1, 1, 512), 0.0002), True)),
    qconv2d("int4, depthwise", QConv2d(5, -4, padding=SAME, groups=8, bits=4),
            nibbles(layer((1, 5, 6, 8), (8, 3, 3, 1), 0.02))),
    qconv2d("int4, depthwise, six channels", QConv2d(5, -4, padding=SAME, stride=(2, 2), groups=6, bits=4),
            nibbles(layer((1, 5, 6, 6), (6, 3, 3, 1), 0.02))),
    qconv2d("int4, depthwise, 5x2, odd", QConv2d(-7, 2, padding=(2, 2, 0, 1), groups=5, hi=90, bits=4),
            nibbles(layer((2, 6, 4, 5), (5, 5, 2, 1), 0.02))),
    qconv2d("int4, depthwise, one channel", QConv2d(5, -4, padding=SAME, bits=4),
            nibbles(layer((1, 5, 4, 1), (1, 3, 3, 1), 0.02))),
)  # fmt: skip

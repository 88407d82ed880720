"""Cases of int8 layers of which few weights are not zero."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from tests.ops.case import Inputs
from tests.ops.cases.int8 import extreme, layer, qconv2d, qlinear


def few(inputs: Inputs, part: float = 0.2) -> Inputs:
    """Keep this part of each row's groups of four weights, at least one in total; single weights in them may be
    zero."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        x, weight, *rest = inputs(rng)
        blocks = weight.reshape(weight.shape[0], -1, 4)
        kept = rng.random(blocks.shape[:2]) < part
        kept[-1, -1] = True
        blocks = blocks * kept[..., None]
        blocks[0, :, 1] = 0
        return (x, blocks.reshape(weight.shape), *rest)

    return build


def ends(x: Shape, weight: Shape) -> Inputs:
    """The first row has nothing, the second its first and last four, the third its last alone."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        image, dense, *rest = layer(x, weight, 0.01)(rng)
        sparse = np.zeros_like(dense)
        sparse[1, :4], sparse[1:3, -4:] = dense[1, :4], dense[1:3, -4:]
        return (image, sparse, *rest)

    return build


CASES = (
    qlinear("sparse, 64 to 8", QLinear(-128, hi=100), few(layer((1, 64), (8, 64), 0.01))),
    qlinear("sparse, odd rows", QLinear(3), few(layer((1, 100), (7, 100), 0.01))),
    qlinear("sparse, shifted", QLinear(0, shift=3), few(layer((1, 64), (16, 64), 0.0005))),
    qlinear("sparse, two rows", QLinear(-5, lo=-5), few(layer((2, 60), (10, 60), 0.01))),
    qlinear("sparse, many rows", QLinear(9), few(layer((7, 48), (6, 48), 0.01), 0.1)),
    qlinear("sparse, largest", QLinear(0), few(extreme((1, 256), (4, 256), 1 << 18))),
    qlinear("sparse, far apart", QLinear(1), ends((1, 2056), (5, 2056))),
    qlinear("sparse, empty", QLinear(-3, lo=-100), ends((1, 64), (9, 64))),
    qconv2d("sparse, one by one", QConv2d(3, -4), few(layer((1, 3, 5, 32), (8, 1, 1, 32), 0.02), 0.1)),
    qconv2d("sparse, two images", QConv2d(-9, 0, lo=0), few(layer((2, 3, 3, 40), (10, 1, 1, 40), 0.02), 0.1)),
)

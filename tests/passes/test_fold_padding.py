"""Padding folds into a convolution across what moves or renames dimensions, and across nothing else."""

from __future__ import annotations

import pytest

from baretorch.ir.graph import Builder, DType, Op, Shape
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.passes.fold import fold_padding
from tests.passes.test_passes import check, random

Sides = tuple[tuple[int, int], ...]
NONE = (0, 0)


def fold(shape: Shape, sides: Sides, steps: list[Op], left: list[str]) -> Op:
    """The convolution that is left of pad, these steps and a 1x1 convolution."""
    b = Builder()
    x = b.input("x", shape, DType.FLOAT32)
    y = b.add(Pad(sides, 0.0), x)
    for op in steps:
        y = b.add(op, y)
    channels = b.graph([x], [y])[y].shape[3]
    y = b.add(Conv2d(), y, b.const("w", random(3, 1, 1, channels)))
    return check(b.graph([x], [y]), fold_padding, left).nodes[-1].op


@pytest.mark.parametrize(
    ("shape", "sides", "steps", "padding"),
    [
        ((1, 5, 4), (NONE, (2, 1), NONE), [Reshape((1, 1, 8, 4))], (0, 0, 2, 1)),
        ((1, 4, 5), (NONE, NONE, (2, 0)), [Reshape((1, 4, 1, 7)), Permute((0, 2, 3, 1))], (0, 0, 2, 0)),
        ((1, 1, 4, 5), (NONE, NONE, (4, 5), (1, 2)), [Reshape((1, 13, 8, 1))], (4, 5, 1, 2)),
        ((1, 1, 1, 5), (NONE, NONE, (1, 1), NONE), [Permute((0, 2, 3, 1))], (1, 1, 0, 0)),
    ],
)
def test_folds(shape: Shape, sides: Sides, steps: list[Op], padding: tuple[int, int, int, int]) -> None:
    assert fold(shape, sides, steps, [*(op.name for op in steps), "conv2d"]) == Conv2d(padding=padding)


@pytest.mark.parametrize(
    ("shape", "sides", "steps"),
    [
        ((1, 6, 4), (NONE, (2, 2), NONE), [Reshape((1, 2, 5, 4))]),  # the zeros are not around the image
        ((1, 5, 4), (NONE, (2, 1), (0, 2)), [Reshape((1, 1, 8, 6))]),  # channels of zeros
        ((1, 5, 4), (NONE, (-2, 1), NONE), [Reshape((1, 1, 4, 4))]),  # cropped
        ((1, 5, 4), (NONE, (-4, 0), NONE), [Reshape((1, 1, 1, 4))]),  # cropped to one
    ],
)
def test_leaves_what_a_convolution_cannot_say(shape: Shape, sides: Sides, steps: list[Op]) -> None:
    assert fold(shape, sides, steps, ["pad", *(op.name for op in steps), "conv2d"]) == Conv2d()

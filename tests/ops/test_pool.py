"""Pools: what they refuse, and windows PyTorch does not offer. Their values are in the case table."""

from __future__ import annotations

from math import inf

import numpy as np

from baretorch.ops.pool import AvgPool2d, MaxPool2d
from tests.ops.case import Case, normal
from tests.ops.host import run_host
from tests.ops.refusal import refusal


def test_refusals() -> None:
    assert refusal(MaxPool2d((4, 2), (2, 2)), (1, 3, 8, 2)) == (
        "error: max_pool2d: the output is empty\n"
        "  have  x0 float32[1, 3, 8, 2]\n"
        "  need  an image that holds the kernel (4, 2)"
    )
    assert "without size or stride" in refusal(MaxPool2d((2, 2), (0, 1)), (1, 8, 8, 2))
    assert "four dimensions" in refusal(AvgPool2d((2, 2), (2, 2)), (8, 8, 2))
    assert "padding (0, 0, -1, 0) is negative" in refusal(AvgPool2d((2, 2), (2, 2), (0, 0, -1, 0)), (1, 8, 8, 2))


def test_window_in_the_padding() -> None:
    """Padding above the kernel is refused by PyTorch; here such a window has maximum -inf and average 0."""
    x = normal((1, 2, 2, 1))
    largest = Case("max", MaxPool2d((1, 1), (1, 1), (2, 2, 0, 0)), x, lambda x: x)
    average = Case("avg", AvgPool2d((1, 1), (1, 1), (2, 2, 0, 0), count_include_pad=False), x, lambda x: x)
    for case, empty in ((largest, -inf), (average, 0.0)):
        want = np.full((1, 6, 2, 1), empty, np.float32)
        want[:, 2:4] = case.arrays()[0]
        np.testing.assert_array_equal(case.op.reference(*case.arrays())[0], want)
        np.testing.assert_array_equal(run_host([case], inline=False)[0][0], want)

"""Resampling: what it refuses. Its values are in the case table."""

from __future__ import annotations

from baretorch.ir.graph import DType
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d
from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d
from tests.ops.refusal import refusal


def test_refusals() -> None:
    assert refusal(UpsampleNearest2d((0, 4), (0.5, 0.5)), (1, 2, 2, 3)) == (
        "error: upsample_nearest2d: from 2 x 2 to 0 x 4 is not possible\n"
        "  have  x0 float32[1, 2, 2, 3]\n"
        "  need  heights and widths from 1 to 32767"
    )
    assert "to 40000 x 4" in refusal(UpsampleBilinear2d((40000, 4), (0.5, 0.5)), (1, 2, 2, 3))
    assert "four dimensions" in refusal(UpsampleNearest2d((4, 4), (0.5, 0.5)), (2, 2, 3))
    assert "is negative" in refusal(UpsampleBilinear2d((4, 4), (-0.5, 0.5)), (1, 2, 2, 3))
    assert "int8 is not supported" in refusal(UpsampleBilinear2d((4, 4), (0.5, 0.5)), (1, 2, 2, 3), dtype=DType.INT8)


def test_refusals_of_adaptive_pools() -> None:
    assert refusal(AdaptiveMaxPool2d((0, 2)), (1, 4, 4, 3)) == (
        "error: adaptive_max_pool2d: output size (0, 2)\n"
        "  have  x0 float32[1, 4, 4, 3]\n"
        "  need  an image and a size of 1 or more"
    )
    assert "four dimensions" in refusal(AdaptiveAvgPool2d((2, 2)), (4, 4, 3))

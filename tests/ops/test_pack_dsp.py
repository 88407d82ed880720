"""Which kernel of the DSP extension takes which convolution, and how far its output may run into its input."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import DType, Tensor
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.plan.select import select_kernel
from baretorch.targets.boards import load_board

CPU = load_board("mps2-an386").chip.cpu
SAME = (1, 1, 1, 1)
AHEAD = (0, 1, 0, 1)


def call(op: QConv2d, x: tuple[int, ...], weight: tuple[int, ...], bias: int = 0, largest: int = 20) -> Call[QConv2d]:
    """A convolution whose weights are all as large as that."""
    out = weight[0]
    inputs = (
        Tensor("x", x, DType.INT8),
        Tensor("weight", weight, DType.INT8, data=np.full(weight, largest, np.int8)),
        Tensor("bias", (out,), DType.INT32, data=np.full(out, bias, np.int32)),
        Tensor("multiplier", (out,), DType.INT32, data=np.full(out, 1 << 20, np.int32)),
    )
    (y,) = op.infer(inputs)
    return Call(op, inputs, (Tensor("y", y.shape, y.dtype),))


POINTWISE = call(QConv2d(0, 0), (1, 25, 5, 64), (64, 1, 1, 64))
DEPTHWISE = call(QConv2d(0, 0, padding=SAME, groups=64), (1, 25, 5, 64), (64, 3, 3, 1))
STRIDED = call(QConv2d(0, 0, padding=AHEAD, stride=(2, 2), groups=16), (1, 48, 48, 16), (16, 3, 3, 1))
DENSE = call(QConv2d(0, 0, padding=SAME), (1, 32, 32, 16), (16, 3, 3, 16))
POOLED = call(QConv2d(0, 0, padding=SAME, pool=(2, 2)), (1, 8, 8, 16), (8, 3, 3, 16))


@pytest.mark.parametrize(
    ("given", "symbol"),
    [
        (POINTWISE, "bt_qconv2d_dsp"),
        (DENSE, "bt_qconv2d_dsp"),
        (POOLED, "bt_qconv2d_pairs_dsp"),
        (call(QConv2d(0, 0), (1, 2, 2, 8), (7, 1, 1, 8)), "bt_qconv2d_pairs_dsp"),
        (call(QConv2d(0, 0, shift=1), (1, 2, 2, 8), (8, 1, 1, 8)), "bt_qconv2d_pairs_dsp"),
        (call(QConv2d(0, 0), (1, 2, 2, 512), (8, 1, 1, 512), largest=127), "bt_qconv2d_dsp"),
        (call(QConv2d(0, 0), (1, 2, 2, 512), (8, 1, 1, 512), 140_000, 127), "bt_qconv2d_pairs_dsp"),
        (call(QConv2d(0, 0), (1, 2, 2, 520), (8, 1, 1, 520), largest=127), "bt_qconv2d_pairs_dsp"),
        (DEPTHWISE, "bt_qconv2d_depthwise3_rows_dsp"),
        (STRIDED, "bt_qconv2d_depthwise3_dsp"),
        (call(QConv2d(0, 0, groups=8), (1, 9, 9, 8), (8, 5, 5, 1)), "bt_qconv2d_depthwise_dsp"),
        (call(QConv2d(0, 0, groups=8), (1, 9, 9, 8), (8, 3, 3, 1), 1 << 23), "bt_qconv2d_depthwise_dsp"),
        (call(QConv2d(0, 0, groups=2), (1, 9, 9, 8), (8, 3, 3, 4)), "bt_qconv2d_ref"),
    ],
)
def test_selection(given: Call[QConv2d], symbol: str) -> None:
    assert select_kernel(given, CPU).symbol == symbol


@pytest.mark.parametrize(
    ("given", "distance", "scratch"),
    [
        (POINTWISE, 0, 6 * 64 + 32),
        (DEPTHWISE, 0, 16 * 7 + 2 * 5 * 64),
        (STRIDED, 24 * 16, 12 * 26),  # behind the first row of outputs
        (DENSE, 33 * 16, 6 * 144 + 32 + 144),  # a row and a pixel behind
    ],
)
def test_layers_of_the_field_overlap_their_input(given: Call[QConv2d], distance: int, scratch: int) -> None:
    kernel = select_kernel(given, CPU)
    assert kernel.overlap(given) == (distance,)
    assert kernel.scratch(given) == scratch

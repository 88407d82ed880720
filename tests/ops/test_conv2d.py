"""conv2d: what it refuses, counts and fits. Its values are in the case table."""

from __future__ import annotations

from baretorch.ops import kernels_of
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers.kernel import Call
from tests.ops.refusal import refusal, tensors


def test_macs_count_the_convolution_outputs_that_are_needed() -> None:
    op = Conv2d(padding=(1, 1, 1, 1), groups=2, pool=(2, 2))
    x, weight, y = tensors((1, 7, 6, 4), (8, 3, 3, 2), (1, 3, 3, 8))
    assert op.infer([x, weight])[0].shape == y.shape
    assert op.macs([x, weight], [y]) == 6 * 6 * 8 * 3 * 3 * 2


def test_refuses_channels_that_do_not_fit() -> None:
    assert refusal(Conv2d(groups=2), (1, 5, 5, 4), (6, 3, 3, 4)) == (
        "error: conv2d: 4 input and 6 output channels do not fit groups of 2\n"
        "  have  x0 float32[1, 5, 5, 4], x1 float32[6, 3, 3, 4]\n"
        "  need  weight[O, KH, KW, C / groups], with O a multiple of groups"
    )
    assert "do not fit groups of 2" in refusal(Conv2d(groups=2), (1, 5, 5, 4), (3, 3, 3, 2))


def test_refuses_an_image_below_the_kernel() -> None:
    assert refusal(Conv2d(dilation=(2, 2), pool=(2, 2)), (1, 5, 6, 1), (1, 3, 3, 1)) == (
        "error: conv2d: the output is empty\n"
        "  have  x0 float32[1, 5, 6, 1], x1 float32[1, 3, 3, 1]\n"
        "  need  an image that holds the kernel at dilation (2, 2) and the pool (2, 2)"
    )


def test_refuses_other_ranks_bias_and_padding() -> None:
    assert "four dimensions" in refusal(Conv2d(), (5, 5, 4), (6, 3, 3, 4))
    assert "without size or stride" in refusal(Conv2d(stride=(0, 1)), (1, 5, 5, 4), (6, 3, 3, 4))
    assert "without size or stride" in refusal(Conv2d(), (1, 5, 5, 4), (6, 0, 3, 4))
    assert "need  bias[6]" in refusal(Conv2d(), (1, 5, 5, 4), (6, 3, 3, 4), (5,))
    assert "padding (0, -1, 0, 0) is negative" in refusal(Conv2d(padding=(0, -1, 0, 0)), (1, 5, 5, 4), (6, 3, 3, 4))


def test_weights_must_be_constant() -> None:
    x, weight, y = tensors((1, 5, 5, 4), (6, 3, 3, 4), (1, 3, 3, 6))
    call = Call(Conv2d(), (x, weight), (y,))
    assert not any(k.fits(call) for k in kernels_of(call.op))

"""linear: what it refuses, and what it counts. Its values are in the case table."""

from __future__ import annotations

from baretorch.ops.linear import Linear
from tests.ops.refusal import refusal, tensors


def test_macs() -> None:
    x, weight, y = tensors((2, 3, 8), (5, 8), (2, 3, 5))
    assert Linear().macs([x, weight], [y]) == 2 * 3 * 5 * 8


def test_refuses_other_depth() -> None:
    assert refusal(Linear(), (1, 7), (5, 8)) == (
        "error: linear: the input's last dimension is not the weight's\n"
        "  have  x0 float32[1, 7], x1 float32[5, 8]\n"
        "  need  x[..., in] and weight[out, in]"
    )

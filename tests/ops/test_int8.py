"""int8 operators against the real numbers they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir import Array, Quant
from baretorch.ops.arithmetic import dequantize, quantize
from baretorch.ops.qbinary import product_of, sum_of
from baretorch.ops.qsoftmax import QSoftmax

RNG = np.random.default_rng(0)


def quant() -> Quant:
    return Quant((float(10 ** RNG.uniform(-3, 1)),), (int(RNG.integers(-128, 128)),))


def real(x: Array, q: Quant) -> Array:
    return dequantize(x, q.scale[0], q.zero_point[0]).astype(np.float64)


def pairs() -> tuple[Array, Array]:
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    return a.astype(np.int8), b.astype(np.int8)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_are_within_a_step_and_32_bits(sign: int) -> None:
    for _ in range(30):
        qa, qb, qy = quant(), quant(), quant()
        op = sum_of(qa, qb, qy, sign)
        if op is None:
            assert max(qa.scale[0], qb.scale[0]) / qy.scale[0] > 63
            continue
        assert max(abs(op.a_factor), abs(op.b_factor)) < 1 << 15
        extremes = (abs(op.a_factor) + abs(op.b_factor)) * 128 + abs(op.offset)
        assert extremes < 1 << 31
        a, b = pairs()
        want = quantize(real(a, qa) + sign * real(b, qb), qy.scale[0], qy.zero_point[0])
        assert np.abs(op.reference(a, b)[0].astype(int) - want).max() <= 1


def test_products_are_within_a_step() -> None:
    for _ in range(30):
        qa, qb = quant(), quant()
        qy = Quant((qa.scale[0] * qb.scale[0] * float(RNG.uniform(1, 300)),), (3,))
        a, b = pairs()
        want = quantize(real(a, qa) * real(b, qb), qy.scale[0], qy.zero_point[0])
        assert np.abs(product_of(qa, qb, qy).reference(a, b)[0].astype(int) - want).max() <= 1


def test_a_sum_far_too_fine_has_no_int8_form() -> None:
    one = Quant((1.0,), (0,))
    assert sum_of(one, one, Quant((1 / 63,), (0,))) is not None
    assert sum_of(one, one, Quant((1 / 65,), (0,))) is None


@pytest.mark.parametrize("length", [1, 2, 12, 100, 256])
@pytest.mark.parametrize("scale", [0.0005, 0.01, 0.05, 0.3, 5.0])
def test_softmax_is_within_a_step(length: int, scale: float) -> None:
    for spread in (1, 20, 256):
        x = RNG.integers(-128, -128 + spread, (50, length)).astype(np.int8)
        e = np.exp(scale * (x.astype(np.float64) - x.max(axis=-1, keepdims=True)))
        want = np.clip(np.rint(256 * e / e.sum(axis=-1, keepdims=True)) - 128, -128, 127)
        assert np.abs(QSoftmax(scale).reference(x)[0] - want).max() <= 1

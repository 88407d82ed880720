"""int8 operators against the real numbers they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import Array, Quant
from baretorch.ops.attention import Attention
from baretorch.ops.int8.arithmetic import dequantize, quantize_array
from baretorch.ops.int8.qattention import attention_of
from baretorch.ops.int8.qbinary import product_of, sum_of
from baretorch.ops.int8.qnorm import QNorm, affine_of, eps_of, inverse_root
from baretorch.ops.int8.qsoftmax import QSoftmax, log_softmax_of
from baretorch.ops.int8.qupsample import QUpsampleBilinear2d

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
        want = quantize_array(real(a, qa) + sign * real(b, qb), qy.scale[0], qy.zero_point[0])
        assert np.abs(op.reference(a, b)[0].astype(int) - want).max() <= 1


def test_products_are_within_a_step() -> None:
    for _ in range(30):
        qa, qb = quant(), quant()
        qy = Quant((qa.scale[0] * qb.scale[0] * float(RNG.uniform(1, 300)),), (3,))
        a, b = pairs()
        want = quantize_array(real(a, qa) * real(b, qb), qy.scale[0], qy.zero_point[0])
        assert np.abs(product_of(qa, qb, qy).reference(a, b)[0].astype(int) - want).max() <= 1


def test_a_sum_far_too_fine_has_no_int8_form() -> None:
    one = Quant((1.0,), (0,))
    assert sum_of(one, one, Quant((1 / 63,), (0,))) is not None
    assert sum_of(one, one, Quant((1 / 65,), (0,))) is None


@pytest.mark.parametrize("length", [1, 2, 12, 100, 256, 5000])
@pytest.mark.parametrize("scale", [0.0005, 0.01, 0.05, 0.3, 5.0])
def test_softmax_is_within_a_step(length: int, scale: float) -> None:
    for spread in (1, 20, 256):
        x = RNG.integers(-128, -128 + spread, (50, length)).astype(np.int8)
        e = np.exp(scale * (x.astype(np.float64) - x.max(axis=-1, keepdims=True)))
        want = np.clip(np.rint(256 * e / e.sum(axis=-1, keepdims=True)) - 128, -128, 127)
        assert np.abs(QSoftmax(scale).reference(x)[0] - want).max() <= 1


@pytest.mark.parametrize("count", [1, 2, 7, 64, 640])
@pytest.mark.parametrize("scale", [0.0003, 0.01, 0.5])
@pytest.mark.parametrize("centred", [True, False])
def test_norms_are_within_a_step(count: int, scale: float, centred: bool) -> None:
    eps = 1e-5
    for spread in (1, 3, 40, 256):
        x = RNG.integers(-128, -128 + spread, (40, 1, 1, count)).astype(np.int8)
        zero = int(RNG.integers(-128, 128))
        weight, bias, y = RNG.normal(1, 0.5, count), RNG.normal(0, 0.5, count), Quant((0.03,), (5,))
        real_x = scale * (x.astype(np.float64) - zero)
        moved = real_x - real_x.mean(axis=-1, keepdims=True) * centred
        normal = moved / np.sqrt((moved**2).mean(axis=-1, keepdims=True) + eps) * weight + bias
        want = np.clip(np.rint(normal / y.scale[0]) + y.zero_point[0], -128, 127)
        stored = affine_of(weight, bias, y)
        assert stored is not None
        op = QNorm(zero, eps_of(eps, count, scale), centred)
        assert np.abs(op.reference(x, *stored)[0] - want).max() <= 1


def test_roots_have_sixteen_bits() -> None:
    d = np.concatenate([np.arange(1, 3000), RNG.integers(1, 1 << 61, 5000), [(1 << 32) - 1, 1 << 32, 1 << 61]])
    factor, exponent = inverse_root(d)
    with np.errstate(all="raise"):
        ratio = factor / 2.0 ** (37 + exponent) * np.sqrt(d.astype(np.float64))
    assert factor.max() < 1 << 23 and np.abs(ratio - 1).max() < 2**-14


@pytest.mark.parametrize("keys", [1, 3, 16, 200])
@pytest.mark.parametrize("scale", [0.01, 0.3, 4.0])
def test_attention_is_within_a_step(keys: int, scale: float) -> None:
    q, k, v = (RNG.integers(-128, 128, (8, n, 16)).astype(np.int8) for n in (9, keys, keys))
    quants = Quant((0.02,), (3,)), Quant((0.03,), (-7,)), Quant((0.05,), (20,))
    y = Quant((0.05,), (-5,))
    floats = [real(x, quant) for x, quant in zip((q, k, v), quants, strict=True)]
    (exact,) = Attention(scale).reference(*floats)
    want = np.clip(np.rint(exact / y.scale[0]) + y.zero_point[0], -128, 127)
    assert np.abs(attention_of(Attention(scale), *quants, y).reference(q, k, v)[0] - want).max() <= 1


@pytest.mark.parametrize("length", [1, 2, 10, 300])
@pytest.mark.parametrize("scale", [0.002, 0.05, 0.5])
def test_log_softmax_is_within_a_step(length: int, scale: float) -> None:
    x = RNG.integers(-128, 128, (50, length)).astype(np.int8)
    e = scale * (x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    exact = e - np.log(np.exp(e).sum(axis=-1, keepdims=True))
    y = Quant((max(-float(exact.min()), 1e-2) / 255,), (127,))
    want = np.clip(np.rint(exact / y.scale[0]) + y.zero_point[0], -128, 127)
    made = log_softmax_of(Quant((scale,), (0,)), y)
    assert np.abs(made.reference(x)[0] - want).max() <= 1


def test_bilinear_pixels_are_within_a_step() -> None:
    op = QUpsampleBilinear2d((13, 17), (5 / 13, 7 / 17))
    x = RNG.integers(-128, 128, (2, 5, 7, 3)).astype(np.int8)
    (exact,) = op.geometry.reference(x.astype(np.float32))
    assert np.abs(op.reference(x)[0] - exact).max() < 0.63, "half a step, and 2 * 255 / 4096"

"""Cases of operators of 16 bits in LiteRT's arithmetic. The torch side follows docs/arithmetic.md, with 64-bit
integers; that LiteRT computes the same is tested in tests/frontends/test_tflite_sixteen.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Shape
from baretorch.ops.int8.litert import (
    LiteRtAdd16,
    LiteRtAvgPool16,
    LiteRtCurve16,
    LiteRtLeakyRelu16,
    LiteRtMul16,
    Rescale,
    add16_of,
    curve16_of,
    leaky_relu16_of,
    mul16_of,
    rescale_of,
)
from baretorch.ops.int8.litert_softmax import LiteRtSoftmax8, LiteRtSoftmax16
from baretorch.ops.int8.litert_svdf import LiteRtSvdf
from tests.ops.case import Case, Inputs, nchw, nhwc
from tests.ops.cases.litert_lstm import away

WHOLE = (-32768, 32767)


def ints(dtype: type[np.signedinteger[Any]], *shapes: Shape, most: int = 0) -> Inputs:
    limit = most or int(np.iinfo(dtype).max)
    return lambda rng: tuple(rng.integers(-limit - 1, limit + 1, s).astype(dtype) for s in shapes)


def half_up(v: torch.Tensor, bits: int) -> torch.Tensor:
    return torch.div(v + (1 << (bits - 1)), 1 << bits, rounding_mode="floor")


def scaled(v: torch.Tensor, multiplier: int, shift: int) -> torch.Tensor:
    """v * multiplier / 2^(31 - shift), of the lower 32 bits of a v that is shifted to the left."""
    kept = (v * (1 << max(shift, 0)) + (1 << 31)) % (1 << 32) - (1 << 31)
    whole = half_up(kept * abs(multiplier), 31)
    return away(whole, max(-shift, 0)) * (-1 if multiplier < 0 else 1)


def rescale(name: str, dtype: type[np.signedinteger[Any]], op: Rescale, most: int = 0) -> Case:
    limits = np.iinfo(op.to)

    def run(x: torch.Tensor) -> torch.Tensor:
        y = scaled(x.long() - op.x_zero, op.multiplier, op.shift) + op.zero
        return y.clamp(limits.min, limits.max).to(getattr(torch, op.to))

    return Case(f"rescale {name}", op, ints(dtype, (3, 70), most=most), run)


def add(name: str, op: LiteRtAdd16, a: Shape, b: Shape) -> Case:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = scaled(x.long() * 32768, op.a_multiplier, op.a_shift)
        total = total + scaled(y.long() * 32768, op.b_multiplier, op.b_shift)
        return scaled(total, op.multiplier, op.shift).clamp(op.lo, op.hi).short()

    return Case(f"litert_add16 {name}", op, ints(np.int16, a, b), run)


def mul(name: str, op: LiteRtMul16, a: Shape, b: Shape) -> Case:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return scaled(x.long() * y.long(), op.multiplier, op.shift).clamp(op.lo, op.hi).short()

    return Case(f"litert_mul16 {name}", op, ints(np.int16, a, b), run)


def leaky(name: str, op: LiteRtLeakyRelu16) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        v = x.long()
        below = scaled(v, op.alpha_multiplier, op.alpha_shift)
        return torch.where(v < 0, below, scaled(v, op.multiplier, op.shift)).clamp(*WHOLE).short()

    return Case(f"litert_leaky_relu16 {name}", op, ints(np.int16, (5, 40)), run)


def curve(name: str, op: LiteRtCurve16) -> Case:
    """Along a line between two points of the sigmoid, which ends at the 255th."""

    def run(x: torch.Tensor) -> torch.Tensor:
        exact = 65536 * torch.sigmoid(torch.arange(513, dtype=torch.float64) / 48)
        here, middle, after = exact[:-2:2], exact[1::2], exact[2::2]
        points = (here + (middle - (here + after) / 2) / 2).round().long()
        points[255] = 65535
        v = torch.div(x.long() * op.multiplier + (1 << op.shift) // 2, 1 << op.shift, rounding_mode="floor")
        step = 256 if op.tanh else 512
        first = torch.div(v.abs(), step, rounding_mode="floor")
        at = first.clamp(max=254)
        up = points[at] * step + (v.abs() % step) * (points[at + 1] - points[at])
        up = torch.where(first >= 255, (65535 if op.tanh else 65534) * step, up)
        if op.tanh:
            y = torch.where(v < 0, 2**23 - up + 127, up - 2**23 + 128)
            return torch.div(y, 256, rounding_mode="floor").short()
        y = torch.where(v < 0, 2**25 - up + 511, up + 512)
        return torch.div(y, 1024, rounding_mode="floor").short()

    return Case(f"litert_curve16 {name}", op, ints(np.int16, (4, 100)), run)


def avg_pool(name: str, op: LiteRtAvgPool16, x: Shape) -> Case:
    top, bottom, left, right = op.padding

    def sums(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom))
        return nhwc(F.avg_pool2d(padded, op.kernel, op.stride, divisor_override=1)).round().long()

    def run(x: torch.Tensor) -> torch.Tensor:
        total, count = sums(x), sums(torch.ones_like(x))
        half = torch.div(count, 2, rounding_mode="floor")
        return torch.div(total + total.sign() * half, count, rounding_mode="trunc").short()

    return Case(f"litert_avg_pool16 {name}", op, ints(np.int16, x), run)


def product(a: torch.Tensor, b: torch.Tensor | int) -> torch.Tensor:
    return half_up(a * b, 31)


def exp(v: torch.Tensor) -> torch.Tensor:
    """e^v of numbers below 0 with 26 fractional bits, with 31."""
    quarter = 1 << 24
    rest = v % quarter - quarter
    x = rest * 32 + (1 << 28)
    x2 = product(x, x)
    cubes = product(away(product(x2, x2), 2) + product(x2, x), round(2**31 / 3))
    constant = round(2**31 * np.exp(-1 / 8))
    e = constant + product(x + away(cubes + x2, 1), constant)
    quarters = torch.div(rest - v, quarter, rounding_mode="floor")
    for k in range(-2, 5):
        e = torch.where(quarters % 2 == 1, product(e, round(2**31 * np.exp(-(2.0**k)))), e)
        quarters = torch.div(quarters, 2, rounding_mode="floor")
    return torch.where(v == 0, 2**31 - 1, e)


def softmax8(name: str, scale: float, *x: int, most: int = 127) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        multiplier, shift = np.frexp(scale * 2**26)
        d = x.long() - x.long().amax(-1, keepdim=True)
        near = d >= -int(31 * 2.0 ** (26 - shift))
        e = torch.where(near, exp(torch.where(near, product(d << max(shift, 0), round(multiplier * 2**31)), 0)), 0)
        total = away(e, 12).sum(-1, keepdim=True)
        bit = torch.floor(torch.log2(total.double())).long()
        half = torch.div((total << (31 - bit)) - (1 << 31) + (1 << 31), 2, rounding_mode="floor")
        inverse = round(48 / 17 * 2**29) - 1 + product(half, -round(32 / 17 * 2**29))
        for _ in range(3):
            inverse = inverse + 4 * product(inverse, 2**29 - product(half, inverse))
        share, bits = product((2 * inverse).clamp(max=2**31 - 1), e), bit - 4
        rounded = share.sign() * torch.div(2 * share.abs() + (1 << bits), 2 << bits, rounding_mode="floor")
        return (rounded - 32768).clamp(*WHOLE).short()

    return Case(f"litert_softmax8 {name}", LiteRtSoftmax8(scale), ints(np.int8, x, most=most), run)


def softmax16(name: str, scale: float, *x: int, most: int = 0) -> Case:
    """The torch side takes the points of the curves as they are."""
    op = LiteRtSoftmax16(scale)

    def between(points: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        at = torch.div(v + 32768, 128, rounding_mode="floor")
        return points[at] + half_up((points[at + 1] - points[at]) * (v % 128), 7)

    def run(x: torch.Tensor) -> torch.Tensor:
        points = torch.from_numpy(op.table().astype(np.int64))
        d = scaled(x.long() - x.long().amax(-1, keepdim=True), *op.factor)
        e = between(points[:513], (d + 32767).clamp(*WHOLE))
        total = e.sum(-1, keepdim=True)
        bit = torch.floor(torch.log2(total.double())).long()
        share = between(points[513:], (half_up(total << (30 - bit), 14) - 98304).clamp(*WHOLE))
        y = torch.div(e * share + (1 << (bit - 1)), 1 << bit, rounding_mode="floor")
        return y.clamp(0, 32767).short()

    return Case(f"litert_softmax16 {name}", op, ints(np.int16, x, most=most), run)


def svdf(name: str, op: LiteRtSvdf, bits: int, batch: int, in_: int, filters: int, memory: int) -> Case:
    dtype = np.int8 if bits == 8 else np.int16
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, state, features, feature_bias, times, bias = (i.long() for i in inputs)
        newest = scaled(x @ features.T + feature_bias, op.state_multiplier, op.state_shift) + op.state_zero
        last = state.reshape(batch, filters, memory).roll(-1, 2)
        last[:, :, -1] = newest.clamp(lowest, highest)
        sums = (last * times).sum(2).reshape(batch, filters // op.rank, op.rank).sum(2) + bias
        kept = (sums + (1 << 31)) % (1 << 32) - (1 << 31)
        y = (scaled(kept, op.multiplier, op.shift) + op.zero).clamp(-128, 127)
        return y.to(torch.int8), last.reshape(batch, -1).to(inputs[1].dtype)

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return (
            rng.integers(-128, 128, (batch, in_)).astype(np.int8),
            rng.integers(lowest, highest + 1, (batch, filters * memory)).astype(dtype),
            rng.integers(-128, 128, (filters, in_)).astype(np.int8),
            rng.integers(-900, 900, filters).astype(np.int32),
            rng.integers(lowest, highest + 1, (filters, memory)).astype(dtype),
            rng.integers(-900, 900, filters // op.rank).astype(np.int32),
        )

    return Case(f"litert_svdf {name}", op, build, run, activations=2)


A, B, Y = 0.00031, 0.0007, 0.00052
CASES = (
    rescale("int8 to int16", np.int8, rescale_of(0.04, -20, 0.001, 77, "int16")),
    rescale("int8 to int32", np.int8, rescale_of(0.04, 5, 0.00001, 0, "int32")),
    rescale("int16 to int8", np.int16, rescale_of(0.000625, 0, 0.059, -128, "int8")),
    rescale("int16 to int16", np.int16, rescale_of(0.001, 40, 0.0017, -9, "int16")),
    rescale("int16 to int32", np.int16, rescale_of(1 / 65536, -32768, 1 / 32768, 0, "int32")),
    rescale("int16 to int32, finer", np.int16, rescale_of(1.0, 0, 0.0003, 5, "int32")),
    rescale("int32 to int8", np.int32, rescale_of(0.00001, 12, 200.0, 3, "int8")),
    rescale("int32 to int16", np.int32, rescale_of(0.00001, -5, 0.6, 0, "int16")),
    rescale("int32 to int32", np.int32, rescale_of(0.001, 0, 0.0013, 0, "int32")),
    rescale("int32 to int32, finer", np.int32, rescale_of(1.0, 0, 0.11, -1, "int32"), most=1 << 24),
    rescale("beyond 32 bits", np.int32, rescale_of(1.0, 0, 0.11, 0, "int32")),
    rescale("to the end of 32 bits", np.int32, rescale_of(1.0, 0, 1.01, 1 << 30, "int32")),
    rescale("to nothing", np.int16, rescale_of(1e-35, 0, 1.0, 4, "int8")),
    add("rows", add16_of(A, B, Y, 1, WHOLE), (2, 3, 7), (2, 3, 7)),
    add("difference, limited", add16_of(B, A, Y, -1, (0, 20000)), (40,), (40,)),
    add("broadcast", add16_of(A, A, B, 1, WHOLE), (2, 3, 4), (3, 1)),
    mul("rows", mul16_of(A, B, 4e-6, WHOLE), (2, 3, 7), (2, 3, 7)),
    mul("broadcast, limited", mul16_of(A, B, 3e-5, (-9000, 800)), (2, 1, 4), (3, 1)),
    leaky("0.1", leaky_relu16_of(A, Y, 0.1)),
    leaky("finer", leaky_relu16_of(A, 0.0002, 0.01)),
    leaky("negative", leaky_relu16_of(A, A, -0.3)),
    curve("sigmoid", curve16_of(0.0003, False)),
    curve("sigmoid, 2^-12", curve16_of(2**-12, False)),
    curve("sigmoid, far", curve16_of(0.01, False)),
    curve("tanh", curve16_of(0.0003, True)),
    curve("tanh, 2^-11", curve16_of(2**-11, True)),
    curve("tanh, small", curve16_of(1e-6, True)),
    avg_pool("2x2", LiteRtAvgPool16((2, 2), (2, 2)), (2, 4, 6, 3)),
    avg_pool("padded", LiteRtAvgPool16((3, 2), (1, 2), (1, 1, 1, 0)), (1, 5, 4, 5)),
    softmax8("rows", 0.07, 3, 10),
    softmax8("one number", 0.07, 2, 1),
    softmax8("two", 0.06996, 5, 2),
    softmax8("near each other", 0.001, 2, 40, most=9),
    softmax8("far apart", 1.5, 5, 7),
    softmax16("rows", 0.0003, 3, 10),
    softmax16("one number", 0.0003, 2, 1),
    softmax16("near each other", 0.0001, 2, 40, most=900),
    softmax16("far apart", 0.01, 5, 7),
    svdf("8 bits", LiteRtSvdf(2, 1 << 30, -5, -13, 1413829461, -6, -128), 8, 1, 9, 6, 5),
    svdf("8 bits, a batch", LiteRtSvdf(1, 1 << 30, -6, 25, 1413829461, -5, 3), 8, 3, 4, 5, 8),
    svdf("8 bits, no memory", LiteRtSvdf(1, 1 << 30, -6, 0, 1413829461, -5, 3), 8, 2, 4, 5, 1),
    svdf("16 bits", LiteRtSvdf(2, 1 << 30, 1, 0, 1413829461, -22, 11), 16, 2, 7, 4, 3),
)

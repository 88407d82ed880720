"""Cases of integer networks. The torch side computes number by number, as the operators are published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt

import numpy as np
import torch
from torch.nn import functional as F

from baretorch.ir.graph import Array, Shape
from baretorch.ops.int8.integer import IntDivide, IntTable, RequantShift
from baretorch.ops.int8.integer_rows import IntNorm, IntSoftmax, ItaSoftmax
from baretorch.ops.int8.integer_sums import IntConv2d, IntMatmul
from tests.ops.case import Case, Inputs, nchw, nhwc

Ints = Sequence[int]


def shifted(name: str, op: RequantShift, x: Shape, other: Shape, reach: int = 10**6, most: int = 600) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        acc, factor = rng.integers(-reach, reach, x), rng.integers(-most, most, other)
        return acc.astype(np.int32), factor.astype(np.int32), rng.integers(-(10**6), 10**6, other).astype(np.int32)

    def run(acc: torch.Tensor, factor: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        wide = acc.long() * factor.long() + offset.long()
        half = wide / 2**op.shift + (0.5 if op.half else 0.0)  # exact: below 2^53
        return (torch.floor(half) + op.zero).clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"requant_shift {name}", op, build, run, activations=1)


def int_table(name: str, shape: Shape) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        x = rng.integers(-128, 128, shape).astype(np.int8)
        return x, rng.integers(-(2**31), 2**31, 256).astype(np.int32)

    return Case(f"int_table {name}", IntTable(), build, lambda x, table: table[x.long() + 128], activations=1)


def divided(name: str, op: IntDivide, a: Shape, b: Shape, most: int = 30000) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        return rng.integers(-most, most, a).astype(np.int32), rng.integers(0, 300, b).astype(np.int32)

    def one(v: int, w: int) -> int:
        numerator, divisor = v * op.factor * op.slope, w * op.slope + op.offset
        rounded = (abs(numerator) + divisor // 2) // divisor
        return rounded if numerator >= 0 else -rounded

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        pairs = zip(*(t.reshape(-1).tolist() for t in torch.broadcast_tensors(a, b)), strict=True)
        shape = torch.broadcast_shapes(a.shape, b.shape)
        return torch.tensor([one(v, w) for v, w in pairs], dtype=torch.int32).reshape(shape)

    return Case(f"int_divide {name}", op, build, run)


def layer(name: str, op: IntConv2d, x: Shape, weight: Shape) -> Case:
    top, bottom, left, right = op.padding

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        image, taps = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (x, weight))
        return image, taps, rng.integers(-(10**6), 10**6, weight[0]).astype(np.int32)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom), value=op.x_zero)
        acc = F.conv2d(padded, nchw(weight.double()), None, op.stride, 0, op.dilation, op.groups)
        return (nhwc(acc).round().long() + bias).to(torch.int32)

    return Case(f"int_conv2d {name}", op, build, run, activations=1)


def product(name: str, op: IntMatmul, a: Shape, b: Shape, constant: bool = False) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        return tuple(rng.integers(-128, 128, shape).astype(np.int8) for shape in (a, b))

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = (x.permute(d) if d else x for x, d in ((a, op.a_dims), (b, op.b_dims)))
        y = ((a.double() - op.a_zero) @ (b.double() - op.b_zero)).to(torch.int32)
        return y.permute(op.y_dims) if op.y_dims else y

    return Case(f"int_matmul {name}", op, build, run, activations=1 if constant else 2)


def by_row(function: Callable[..., list[int]]) -> Callable[..., torch.Tensor]:
    """Apply a function to each row of the first tensor, and to the others as a whole."""

    def run(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1]).tolist()
        given = [t.tolist() for t in others]
        return torch.tensor([function(row, *given) for row in rows], dtype=torch.int8).reshape(x.shape)

    return run


def spread(shape: Shape, *others: tuple[int, int, int]) -> Inputs:
    """Random bytes, of which each row has a range of its own, and int32 constants: count, least and most."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        reach = rng.integers(1, 129, (*shape[:-1], 1))
        x = np.clip(rng.integers(-128, 128, shape) % (2 * reach) - reach, -128, 127).astype(np.int8)
        return x, *(rng.integers(low, high, count).astype(np.int32) for count, low, high in others)

    return build


def int_softmax(name: str, op: IntSoftmax, shape: Shape, largest: int = 45000) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        (x,) = spread(shape)(rng)
        return x, (largest * np.exp(-np.arange(256) / rng.uniform(20, 90))).astype(np.int32)

    def one(row: Ints, weights: Ints) -> list[int]:
        e = [weights[max(row) - v] for v in row]
        return [op.zero + w * op.most // sum(e) for w in e]

    return Case(f"int_softmax {name}", op, build, by_row(one), activations=1)


def ita_softmax(name: str, op: ItaSoftmax, shape: Shape, inputs: Inputs | None = None) -> Case:
    def one(row: Ints) -> list[int]:
        total, largest = 0, -128
        for i in range(0, len(row), op.group or len(row)):
            part = row[i : i + (op.group or len(row))]
            now = max(largest, *part)
            total = total // 2 ** ((now - largest + 16) // 32) + sum(256 // 2 ** ((now - v + 16) // 32) for v in part)
            largest = now
        return [op.zero + op.most * 256 // total // 2 ** ((largest - v + 16) // 32) for v in row]

    return Case(f"ita_softmax {name}", op, inputs or spread(shape), by_row(one))


def norm(name: str, op: IntNorm, shape: Shape, weight: int = 300000, bias: int = 10**5) -> Case:
    def toward_zero(a: int, b: int) -> int:
        return a // b if a >= 0 else -(-a // b)

    def one(row: Ints, weight: Ints, bias: Ints) -> list[int]:
        d = [v - op.x_zero for v in row]
        mean = toward_zero(sum(d), len(d)) if op.centred else 0
        d = [v - mean for v in d]
        deviation = isqrt(sum(v * v for v in d) // len(d) + 1)
        found = [(toward_zero(v * w, deviation) + b) >> op.shift for v, w, b in zip(d, weight, bias, strict=True)]
        return [min(max(v, op.lo), op.hi) for v in found]

    inputs = spread(shape, (shape[-1], -weight, weight), (shape[-1], -bias, bias))
    return Case(f"int_norm {name}", op, inputs, by_row(one), activations=1)


def same(value: int, shape: Shape) -> Inputs:
    return lambda rng: (np.full(shape, value, np.int8),)


SAME = (1, 1, 1, 1)
CASES = (
    shifted("one factor", RequantShift(14, 0), (3, 5, 7), ()),
    shifted("unsigned, per channel", RequantShift(12, -128), (1, 6, 4, 5), (6, 1, 1)),
    shifted("limits, last axis", RequantShift(12, 3, -60, 70), (5, 9), (9,)),
    shifted("rounded down", RequantShift(13, 0, half=False), (2, 3, 5), (3, 5)),
    shifted("no shift", RequantShift(0, 0), (40,), (), 12, 6),
    shifted("largest", RequantShift(31, 0), (50,), (), 2**31, 2**20),
    int_table("odd", (3, 5, 7)),
    int_table("one", (1,)),
    divided("numbers", IntDivide(16384, 7, 1), (4, 9), (4, 1)),
    divided("exact halves", IntDivide(1, 1, 4), (200,), (200,), 50),
    divided("large", IntDivide(16384, 200000, 1), (2, 3, 4), (3, 1)),
    layer("same", IntConv2d(-7, padding=SAME), (1, 6, 7, 9), (8, 3, 3, 9)),
    layer("depthwise", IntConv2d(-128, (2, 2), (0, 1, 0, 1), groups=5), (2, 5, 6, 5), (5, 3, 3, 1)),
    layer("groups, dilated", IntConv2d(3, (1, 2), (2, 0, 1, 1), (2, 1), 2), (1, 7, 6, 6), (4, 3, 2, 3)),
    layer("one pixel", IntConv2d(0), (1, 1, 1, 13), (5, 1, 1, 13)),
    product("rows", IntMatmul(-128, 0), (3, 5, 7), (3, 7, 4)),
    product("constant", IntMatmul(5, 0), (2, 5, 7), (7, 9), True),
    product("orders", IntMatmul(2, -9, (0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)), (1, 6, 2, 5), (1, 4, 2, 5)),
    int_softmax("signed", IntSoftmax(255, -128), (3, 4, 17)),
    int_softmax("few levels", IntSoftmax(15, 0), (9, 5)),
    int_softmax("one number", IntSoftmax(255, -128), (4, 1)),
    int_softmax("large weights", IntSoftmax(255, -128), (6, 255), (2**32 - 1) // 255),
    ita_softmax("whole rows", ItaSoftmax(255, -128), (3, 4, 17)),
    ita_softmax("groups", ItaSoftmax(127, 0, 4), (2, 9, 24)),
    ita_softmax("groups of one", ItaSoftmax(127, 0, 1), (5, 9)),
    ita_softmax("all least", ItaSoftmax(127, 0, 4), (), same(-128, (2, 8))),
    norm("centred", IntNorm(0, 14, True), (5, 3, 32)),
    norm("unsigned", IntNorm(-128, 13, True, -100, 90), (6, 7)),
    norm("root mean square", IntNorm(0, 16, False), (9, 64), 5 * 10**6, 1),
    norm("wide", IntNorm(0, 22, True), (4, 9), 2**31, 2**31),
    norm("one number", IntNorm(0, 4, True), (4, 1), 1000, 500),
)  # fmt: skip

"""Cases of int8 operators without weights: sums, products, pools, softmax. The PyTorch side has 64-bit integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Quant, Shape
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import QAdd, QDiv, QMul, QSquaredDifference, product_of, sum_of
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.int8.qsoftmax import QSoftmax
from baretorch.ops.pool import MaxPool2d
from tests.ops.case import Case, Inputs, nchw, nhwc


def octets(*shapes: Shape) -> Inputs:
    """Random bytes, the extremes among them."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        arrays = tuple(rng.integers(-128, 128, s).astype(np.int8) for s in shapes)
        for a in arrays:
            a.reshape(-1)[:1] = -128
            a.reshape(-1)[-1:] = 127
        return arrays

    return build


def grid(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Pairs of bytes from all over the range, the extremes among them."""
    a, b = np.meshgrid(np.arange(-128, 128, 5), np.arange(-128, 128, 5))
    return a.astype(np.int8), b.astype(np.int8)


def total(a: Quant, b: Quant, y: Quant, sign: int = 1) -> QAdd:
    op = sum_of(a, b, y, sign)
    assert op is not None
    return op


def rounded(acc: torch.Tensor, multiplier: int, shift: int, zero: int) -> torch.Tensor:
    """Apply the rule of docs/arithmetic.md, without the limits."""
    return torch.div((acc << shift) * multiplier + (1 << 31), 1 << 32, rounding_mode="floor") + zero


def qadd(name: str, op: QAdd, inputs: Inputs, activations: int | None = None) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        total = a.long() * op.a_factor + b.long() * op.b_factor + op.offset
        return torch.div(total, 1 << op.shift, rounding_mode="floor").clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"qadd {name}", op, inputs, run, activations)


def qmul(name: str, op: QMul, inputs: Inputs) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        acc = (a.long() - op.a_zero) * (b.long() - op.b_zero)
        return rounded(acc, op.multiplier, op.shift, op.zero).clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"qmul {name}", op, inputs, run)


def qdiv(name: str, op: QDiv, inputs: Inputs) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        n, d = torch.broadcast_tensors((a.long() - op.a_zero) * op.factor, b.long() - op.b_zero)
        quotient = torch.div(n, torch.where(d == 0, 1, d), rounding_mode="trunc")
        y = op.zero + torch.div(quotient + (1 << (op.shift - 1)), 1 << op.shift, rounding_mode="floor")
        limit = torch.where(n > 0, op.hi, torch.where(n < 0, op.lo, op.zero))
        return torch.where(d == 0, limit, y).clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"qdiv {name}", op, inputs, run)


def qsquared(name: str, op: QSquaredDifference, inputs: Inputs) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        apart = (a.long() - op.a_zero) * op.a_factor - (b.long() - op.b_zero) * op.b_factor
        steps = torch.div(apart + 64, 128, rounding_mode="floor")
        return rounded(steps * steps, op.multiplier, 0, op.zero).clamp(op.lo, op.hi).to(torch.int8)

    return Case(f"qsquared_difference {name}", op, inputs, run)


def qavg(name: str, op: QAvgPool2d, shape: Shape) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double() - op.x_zero), (left, right, top, bottom))
        sums = F.avg_pool2d(padded, op.kernel, op.stride, divisor_override=1)
        return rounded(nhwc(sums).round().long(), op.multiplier, op.shift, op.zero).clamp(-128, 127).to(torch.int8)

    return Case(f"qavg_pool2d {name}", op, octets(shape), run)


def qmax(name: str, op: MaxPool2d, shape: Shape) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.float()), (left, right, top, bottom), value=-128.0)
        return nhwc(F.max_pool2d(padded, op.kernel, op.stride, ceil_mode=op.ceil_mode)).to(torch.int8)

    return Case(f"max_pool2d int8 {name}", op, octets(shape), run)


def qsoftmax(name: str, scale: float, inputs: Inputs) -> Case:
    op = QSoftmax(scale)

    def run(x: torch.Tensor) -> torch.Tensor:
        e = torch.from_numpy(op.table().astype(np.int64))[x.long().amax(-1, keepdim=True) - x.long()]
        inverse = torch.div((1 << 32) - 1, e.sum(-1, keepdim=True), rounding_mode="floor")
        return ((((e * inverse >> 23) + 1) >> 1).clamp(max=255) - 128).to(torch.int8)

    return Case(f"qsoftmax {name}", op, inputs, run)


A, B, Y = Quant((0.05,), (-7,)), Quant((0.031,), (12,)), Quant((0.07,), (-20,))
RELU = Quant((0.04,), (-128,))
FINE = Quant((0.00002,), (3,))
SUM, DIFFERENCE = total(A, B, Y), total(A, B, Y, -1)
PRODUCT = product_of(A, B, Quant((0.05,), (-20,)))
SQUARE = QSquaredDifference(-7, 12, 1 << 13, round(0.62 * 2**13), round(0.05**2 / 64**2 / 0.1 * 2**32), -128)
RATIO = QDiv(5, -9, round(31.7 * 2**15), 15, 7)

QADD = (
    qadd("equal shapes", SUM, octets((3, 5, 8), (3, 5, 8))),
    qadd("grid", SUM, grid),
    qadd("odd", SUM, octets((1, 7, 3), (1, 7, 3))),
    qadd("one", SUM, octets((1,), (1,))),
    qadd("relu", replace(total(A, B, RELU), hi=100), octets((40,), (40,))),
    qadd("limits", replace(SUM, lo=-20, hi=65), octets((40,), (40,))),
    qadd("difference", DIFFERENCE, octets((4, 9), (4, 9))),
    qadd("coarse output", total(FINE, FINE, A), grid),
    qadd("fine output", total(A, FINE, Quant((0.001,), (3,))), octets((64,), (64,))),
    qadd("largest", total(Quant((1.0,), (127,)), Quant((1.0,), (127,)), Quant((1.0,), (-128,)), -1), grid),
    qadd("per channel", SUM, octets((1, 4, 5, 6), (6,))),
    qadd("channels first", SUM, octets((2, 1, 1, 6), (2, 4, 5, 6))),
    qadd("scalar", SUM, octets((3, 8), (1,))),
    qadd("rows and columns", SUM, octets((5, 1), (1, 6))),
    qadd("constant", SUM, octets((1, 4, 5, 6), (6,)), activations=1),
)

QMUL = (
    qmul("equal shapes", PRODUCT, octets((3, 5, 8), (3, 5, 8))),
    qmul("grid", PRODUCT, grid),
    qmul("odd", PRODUCT, octets((7,), (7,))),
    qmul("limits", replace(PRODUCT, lo=-20, hi=65), octets((40,), (40,))),
    qmul("gate", PRODUCT, octets((1, 4, 5, 8), (1, 1, 1, 8))),
    qmul("gates of a batch", PRODUCT, octets((2, 3, 3, 5), (2, 1, 1, 5))),
    qdiv("grid", RATIO, grid),
    qdiv("limits", replace(RATIO, lo=-20, hi=65), octets((40,), (40,))),
    qdiv("rows", RATIO, octets((2, 3, 5), (2, 3, 1))),
    qdiv("fine", replace(RATIO, factor=4_000_000, shift=20), octets((40,), (40,))),
    qdiv("steep", replace(RATIO, factor=1 << 22, shift=4), grid),
    qsquared("grid", SQUARE, grid),
    qsquared("rows", SQUARE, octets((2, 3, 5), (2, 3, 1))),
    qsquared("limits", replace(SQUARE, lo=-20, hi=65), octets((40,), (40,))),
    qmul("scalar", PRODUCT, octets((3, 8), (1,))),
    qmul("shifted", product_of(Quant((1.0,), (-128,)), Quant((1.0,), (-128,)), Quant((0.002,), (0,))), grid),
)

THIRD = round(2**32 / 9)
QPOOL = (
    qavg("global", QAvgPool2d((1, 125), (1, 1), -128, round(2**32 / 125), 0, -128), (1, 1, 125, 64)),
    qavg("above 256", QAvgPool2d((20, 15), (1, 1), 5, round(2**32 / 300), 0, -3), (1, 20, 15, 8)),
    qavg("exactly 256", QAvgPool2d((16, 16), (1, 1), 127, round(2**32 / 200), 0, -3), (2, 16, 16, 4)),
    qavg("two by two", QAvgPool2d((2, 2), (2, 2), 3, 2**30, 0, 4), (2, 6, 7, 5)),
    qavg("padded", QAvgPool2d((3, 3), (2, 2), 3, THIRD, 0, 4, (1, 1, 1, 1)), (1, 7, 8, 6)),
    qavg("one channel", QAvgPool2d((3, 3), (1, 1), 3, THIRD, 0, 4), (1, 5, 5, 1)),
    qavg("three channels", QAvgPool2d((3, 2), (1, 1), -3, THIRD, 1, 4), (1, 5, 5, 3)),
    qmax("two by two", MaxPool2d((2, 2), (2, 2)), (2, 6, 8, 16)),
    qmax("odd", MaxPool2d((3, 2), (2, 1)), (1, 7, 6, 7)),
    qmax("padded", MaxPool2d((3, 3), (2, 2), (1, 1, 1, 1)), (1, 7, 8, 6)),
    qmax("ceil", MaxPool2d((2, 2), (2, 2), ceil_mode=True), (1, 7, 5, 4)),
    qmax("one channel", MaxPool2d((2, 2), (2, 2)), (1, 6, 6, 1)),
)

QSOFTMAX = (
    qsoftmax("twelve", 0.05, octets((1, 12))),
    qsoftmax("steep", 1.0, octets((2, 10))),
    qsoftmax("flat", 0.001, octets((3, 4))),
    qsoftmax("rows", 0.02, octets((2, 3, 7))),
    qsoftmax("longest", 0.03, octets((2, 256))),
    qsoftmax("all equal", 0.1, lambda rng: (np.full((1, 256), -128, np.int8),)),
    qsoftmax("one", 0.1, octets((3, 1))),
    qsoftmax("two", 0.015, octets((40, 2))),
)

LOOKUP = (
    Case(
        "lookup",
        Lookup(),
        octets((5, 21), (256,)),
        lambda x, table: table[x.long() + 128],
        activations=1,
    ),
)

CASES = (*QADD, *QMUL, *QPOOL, *QSOFTMAX, *LOOKUP)

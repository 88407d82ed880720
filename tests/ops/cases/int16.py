"""Cases of int16 activations with int8 weights, and of the ways to and from int16. The torch side follows
docs/arithmetic.md, with 64-bit integers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qbinary import QAdd16
from baretorch.ops.int8.qconv2d16 import QConv2d16
from baretorch.ops.int8.qpool import QAvgPool16, QMaxPool16
from baretorch.ops.int8.qsoftmax import QSoftmax16
from baretorch.ops.int8.quantize import Dequantize16, Narrow, Quantize16, Widen
from tests.ops.case import Case, Inputs, nchw, nhwc, values


def layer(x: Shape, weight: Shape, factor: float) -> Inputs:
    """Random numbers, with biases and multipliers that spread the outputs over most of the range."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        out = weight[0]
        return (
            rng.integers(-32768, 32768, x).astype(np.int16),
            rng.integers(-127, 128, weight).astype(np.int8),
            rng.integers(-(1 << 20), 1 << 20, out).astype(np.int32),
            (rng.uniform(0.3, 1.0, out) * factor * 2**32).astype(np.int32),
        )

    return build


def largest(taps: int) -> Inputs:
    """Sums as large as they may be."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        weight = np.full((2, 1, 1, taps), 127, np.int8)
        weight[1] = -127
        multiplier = np.full(2, 1 << 16, np.int32)
        return np.full((1, 1, 4, taps), -32768, np.int16), weight, np.zeros(2, np.int32), multiplier

    return build


def conv(name: str, op: QConv2d16, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, multiplier: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom))
        acc = F.conv2d(padded, nchw(weight.double()), None, op.stride, 0, op.dilation, op.groups)
        sums = (nhwc(acc).round().long() + bias) * (1 << op.shift)
        scaled = torch.div(sums * multiplier + (1 << 31), 1 << 32, rounding_mode="floor")
        return scaled.clamp(op.lo, op.hi).short()

    return Case(f"qconv2d16 {name}", op, inputs, run, activations=1)


def ints(dtype: type[np.int8] | type[np.int16], *shape: int) -> Inputs:
    limits = np.iinfo(dtype)
    return lambda rng: (rng.integers(limits.min, limits.max + 1, shape).astype(dtype),)


def add(name: str, op: QAdd16, a: Shape, b: Shape) -> Case:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = x.long() * op.a_factor + y.long() * op.b_factor + (1 << (op.shift - 1))
        return torch.div(total, 1 << op.shift, rounding_mode="floor").clamp(op.lo, op.hi).short()

    return Case(f"qadd16 {name}", op, lambda rng: (*ints(np.int16, *a)(rng), *ints(np.int16, *b)(rng)), run)


def max_pool(name: str, op: QMaxPool16, x: Shape) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom), value=-32768)
        return nhwc(F.max_pool2d(padded, op.kernel, op.stride)).short()

    return Case(f"qmax_pool16 {name}", op, ints(np.int16, *x), run)


def avg_pool(name: str, op: QAvgPool16, x: Shape) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom))
        sums = nhwc(F.avg_pool2d(padded, op.kernel, op.stride, divisor_override=1)).round().long() << op.shift
        return torch.div(sums * op.multiplier + (1 << 31), 1 << 32, rounding_mode="floor").clamp(-32768, 32767).short()

    return Case(f"qavg_pool16 {name}", op, ints(np.int16, *x), run)


def softmax(name: str, scale: float, *x: int, most: int = 32767) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(256, dtype=torch.float64) * scale
        high, low = ((65535 * torch.exp(-s)).round().long() for s in (256 * steps, steps))
        d = x.long().amax(-1, keepdim=True) - x.long()
        e = (high[d >> 8] * low[d & 255] + (1 << 15)) >> 16
        inverse = torch.div(0xFFFFFFFF, e.sum(-1, keepdim=True), rounding_mode="floor")
        return (((e * inverse >> 16) + 1) >> 1).clamp(max=32767).short()

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return (rng.integers(-most - 1, most + 1, x).astype(np.int16),)

    return Case(f"qsoftmax16 {name}", QSoftmax16(scale), build, run)


def narrow(x: torch.Tensor) -> torch.Tensor:
    return (torch.div(x.int() + 64, 128, rounding_mode="floor") - 5).clamp(-128, 127).char()


def quantize16(x: torch.Tensor) -> torch.Tensor:
    scaled = (x * torch.tensor(1 / 0.001, dtype=torch.float32)).double().nan_to_num(0.0, torch.inf, -torch.inf)
    return scaled.round().clamp(-32768, 32767).short()


REALS = values([-np.inf, -40.0, -32.768, -1.0, -0.0005, -0.0, 0.0005, 0.0015, 0.3, 32.767, 33.0, np.inf, np.nan])
SAME = (1, 1, 1, 1)
CASES = (
    conv("one by one", QConv2d16(), layer((1, 3, 5, 8), (4, 1, 1, 8), 0.003)),
    conv("one by one, one pixel", QConv2d16(lo=0), layer((1, 1, 1, 12), (6, 1, 1, 12), 0.003)),
    conv("3x3", QConv2d16(padding=SAME, hi=20000), layer((2, 4, 5, 3), (6, 3, 3, 3), 0.002)),
    conv("3x3, strided", QConv2d16(stride=(2, 1), padding=SAME), layer((1, 6, 5, 4), (2, 3, 3, 4), 0.002)),
    conv("dilated", QConv2d16(dilation=(2, 1)), layer((1, 7, 5, 2), (2, 3, 2, 2), 0.003)),
    conv("dilated, padded", QConv2d16(padding=SAME, dilation=(1, 2)), layer((1, 4, 7, 6), (4, 3, 3, 6), 0.002)),
    conv("odd", QConv2d16(), layer((1, 4, 4, 5), (3, 2, 2, 5), 0.003)),
    conv("shifted", QConv2d16(shift=2), layer((1, 2, 2, 4), (4, 1, 1, 4), 0.001)),
    conv("groups", QConv2d16(groups=2), layer((1, 4, 4, 6), (4, 3, 3, 3), 0.003)),
    conv("depthwise", QConv2d16(padding=SAME, groups=4), layer((1, 4, 5, 4), (4, 3, 3, 1), 0.005)),
    conv("depthwise, 8", QConv2d16(padding=SAME, groups=8), layer((2, 4, 3, 8), (8, 3, 3, 1), 0.005)),
    conv(
        "depthwise, 17", QConv2d16(stride=(2, 1), padding=SAME, groups=17), layer((1, 7, 5, 17), (17, 3, 3, 1), 0.005)
    ),
    conv("depthwise, 16, limited", QConv2d16(0, 0, 9000, groups=16), layer((1, 3, 4, 16), (16, 3, 2, 1), 0.005)),
    conv("depthwise, 3", QConv2d16(padding=SAME, groups=3), layer((1, 3, 3, 3), (3, 3, 3, 1), 0.005)),
    conv("depthwise, 1", QConv2d16(stride=(2, 2), padding=SAME), layer((1, 5, 5, 1), (1, 3, 3, 1), 0.005)),
    conv(
        "depthwise, 10, wide",
        QConv2d16(2, -20000, stride=(1, 3), padding=(2, 2, 4, 3), groups=10),
        layer((1, 3, 9, 10), (10, 5, 7, 1), 0.0005),
    ),
    conv(
        "depthwise, 9, dilated",
        QConv2d16(padding=(2, 1, 3, 2), dilation=(2, 3), groups=9),
        layer((1, 5, 6, 9), (9, 3, 3, 1), 0.005),
    ),
    conv(
        "depthwise, 8, next to nothing",
        QConv2d16(padding=(0, 0, 3, 3), groups=8),
        layer((1, 1, 2, 8), (8, 1, 2, 1), 0.005),
    ),
    conv("depthwise, two of each", QConv2d16(padding=SAME, groups=4), layer((1, 3, 4, 4), (8, 3, 3, 1), 0.005)),
    conv("largest", QConv2d16(), largest(512)),
    add("rows", QAdd16(9000, 16383, 14), (2, 3, 7), (2, 3, 7)),
    add("difference, limited", QAdd16(12000, -7000, 13, 0, 20000), (40,), (40,)),
    add("broadcast", QAdd16(1000, 16383, 15), (2, 3, 4), (3, 1)),
    add("largest", QAdd16(16383, 16383, 28), (9,), (9,)),
    max_pool("2x2", QMaxPool16((2, 2), (2, 2)), (2, 4, 6, 3)),
    max_pool("padded", QMaxPool16((3, 2), (2, 1), (1, 1, 1, 0)), (1, 5, 4, 5)),
    avg_pool("2x2", QAvgPool16((2, 2), (2, 2), multiplier=(1 << 30) - 7), (2, 4, 6, 3)),
    avg_pool("padded", QAvgPool16((3, 2), (1, 2), (1, 1, 1, 0), 1 << 29, 1), (1, 5, 4, 5)),
    max_pool("many channels", QMaxPool16((2, 2), (1, 1)), (1, 3, 3, 18)),
    max_pool("one channel", QMaxPool16((2, 3), (1, 1)), (1, 3, 4, 1)),
    avg_pool("many channels", QAvgPool16((2, 2), (1, 1), multiplier=1 << 30), (1, 3, 3, 18)),
    avg_pool("one channel", QAvgPool16((2, 2), (1, 1), multiplier=1 << 30), (1, 3, 3, 1)),
    avg_pool("a row", QAvgPool16((1, 49), (1, 1), multiplier=round(2**32 / 49)), (2, 1, 49, 4)),
    softmax("rows", 0.001, 3, 10),
    softmax("one number", 0.001, 2, 1),
    softmax("near each other", 0.0002, 2, 40, most=900),
    softmax("far apart", 0.01, 5, 7),
    softmax("odd rows, nearly equal", 0.0001, 3, 21, most=1),
    softmax("even rows, far apart", 0.02, 6, 12),
    Case("widen", Widen(-7), ints(np.int8, 3, 90), lambda x: ((x.int() + 7) * 128).short()),
    Case("narrow", Narrow(-5), ints(np.int16, 7, 90), narrow),
    Case("quantize16", Quantize16(0.001), REALS, quantize16),
    Case("dequantize16", Dequantize16(0.25), ints(np.int16, 40), lambda x: x.float() / 4),
)

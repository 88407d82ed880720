"""Cases of int8 layers. The torch side computes with 64-bit integers, and requantizes as docs/arithmetic.md says."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.quantize import Dequantize, Quantize
from tests.ops.case import Case, Inputs, nchw, nhwc, normal, values


def requantized(acc: torch.Tensor, multiplier: torch.Tensor, op: QLinear | QConv2d) -> torch.Tensor:
    wide = (acc.long() << op.shift) * multiplier.long() + (1 << 31)
    return (torch.div(wide, 1 << 32, rounding_mode="floor") + op.zero).clamp(op.lo, op.hi).to(torch.int8)


def layer(x: Shape, weight: Shape, factor: float = 0.001) -> Inputs:
    """Random bytes, with biases and multipliers that spread the outputs over most of the range."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        out = weight[0]
        return (
            rng.integers(-128, 128, x).astype(np.int8),
            rng.integers(-127, 128, weight).astype(np.int8),
            rng.integers(-20000, 20000, out).astype(np.int32),
            (rng.uniform(0.3, 1.0, out) * factor * 2**32).astype(np.int32),
        )

    return build


def extreme(x: Shape, weight: Shape, multiplier: int = 0x7FFFFFFF) -> Inputs:
    """The largest accumulators: every product is as large as it can be."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        out = weight[0]
        signs = np.where(rng.random(weight) < 0.5, -127, 127)
        signs[0], signs[-1] = 127, -127
        return (
            np.full(x, -128, np.int8),
            signs.astype(np.int8),
            np.zeros(out, np.int32),
            np.full(out, multiplier, np.int32),
        )

    return build


def lowest(x: Shape, weight: Shape, factor: float = 0.001) -> Inputs:
    """Every other weight is -128, which our own quantizer never gives but others may."""

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        image, weights, bias, multiplier = layer(x, weight, factor)(rng)
        return image, np.where(rng.random(weight) < 0.5, -128, weights).astype(np.int8), bias, multiplier

    return build


def around(v: np.ndarray) -> np.ndarray:
    """These numbers as float32, and those next to them."""
    middle = v.astype(np.float32)
    inf = np.float32(np.inf)
    return np.stack([np.nextafter(middle, -inf), middle, np.nextafter(middle, inf)])


def qlinear(name: str, op: QLinear, inputs: Inputs) -> Case:
    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, multiplier: torch.Tensor) -> torch.Tensor:
        acc = (x.unsqueeze(-2).long() * weight.long()).sum(-1) + bias
        return requantized(acc, multiplier, op)

    return Case(f"qlinear {name}", op, inputs, run, activations=1)


def qconv2d(name: str, op: QConv2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, multiplier: torch.Tensor) -> torch.Tensor:
        padded = F.pad(nchw(x.double()), (left, right, top, bottom), value=op.x_zero)
        acc = F.conv2d(padded, nchw(weight.double()), None, op.stride, 0, op.dilation, op.groups)
        return requantized(nhwc(F.max_pool2d(acc, op.pool)).round().long() + bias, multiplier, op)

    return Case(f"qconv2d {name}", op, inputs, run, activations=1)


QLINEAR = (
    qlinear("one by one", QLinear(0), layer((1, 1), (1, 1), 0.01)),
    qlinear("16 to 16", QLinear(-128, lo=-128, hi=100), layer((1, 16), (16, 16))),
    qlinear("odd", QLinear(3), layer((1, 37), (13, 37))),
    qlinear("batch", QLinear(-5, lo=-5), layer((3, 20), (10, 20))),
    qlinear("several dimensions", QLinear(7), layer((2, 3, 9), (5, 9))),
    qlinear("long", QLinear(0), layer((1, 640), (8, 640), 0.0002)),
    qlinear("shifted", QLinear(0, shift=3), layer((1, 8), (8, 8), 0.0003)),
    qlinear("batch of five, long", QLinear(-5, hi=90), layer((5, 71), (6, 71), 0.0005)),
    qlinear("multiplier above 2^31", QLinear(0, shift=1), extreme((1, 1), (5, 1), 0x7D000000)),
    qlinear("largest", QLinear(0), extreme((1, 64), (4, 64))),
    qlinear("longest", QLinear(0), extreme((1, 2000), (6, 2000))),
    qlinear("weights of -128", QLinear(9), lowest((1, 20), (10, 20))),
    qlinear("weights of -128, batch", QLinear(9), lowest((5, 64), (8, 64), 0.0004)),
    qlinear("long, odd", QLinear(0), layer((1, 1013), (5, 1013), 0.0001)),
)

SAME = (1, 1, 1, 1)

QCONV2D = (
    qconv2d("one by one", QConv2d(3, -4), layer((1, 4, 5, 8), (16, 1, 1, 8))),
    qconv2d("one by one, many", QConv2d(-128, -128), layer((1, 5, 5, 64), (64, 1, 1, 64), 0.0003)),
    qconv2d("one by one, odd", QConv2d(-128, -128), layer((1, 3, 7, 13), (11, 1, 1, 13))),
    qconv2d("one by one, strided", QConv2d(0, 0, stride=(2, 2)), layer((1, 6, 7, 16), (32, 1, 1, 16))),
    qconv2d("one by one, dilated", QConv2d(0, 0, dilation=(2, 3)), layer((1, 2, 5, 8), (4, 1, 1, 8))),
    qconv2d("one by one, padded", QConv2d(9, 0, padding=SAME), layer((2, 2, 3, 8), (4, 1, 1, 8))),
    qconv2d("one pixel", QConv2d(5, -4, lo=-20, hi=30), layer((1, 1, 1, 8), (6, 1, 1, 8))),
    qconv2d("seven pixels", QConv2d(5, -4, lo=-20), layer((2, 1, 7, 12), (6, 1, 1, 12))),
    qconv2d("same", QConv2d(-7, 12, padding=SAME), layer((1, 6, 7, 16), (8, 3, 3, 16), 0.0005)),
    qconv2d("same, odd", QConv2d(5, 1, padding=SAME), layer((1, 5, 9, 5), (7, 3, 3, 5), 0.0008)),
    qconv2d("first layer", QConv2d(-1, -128, padding=(0, 1, 0, 1), stride=(2, 2)), layer((1, 12, 12, 3), (8, 3, 3, 3))),
    qconv2d("one channel", QConv2d(9, 2, padding=(4, 5, 1, 1), stride=(2, 2)), layer((1, 21, 10, 1), (16, 10, 4, 1))),
    qconv2d("pooled", QConv2d(2, -3, padding=SAME, pool=(2, 2)), layer((1, 8, 8, 16), (8, 3, 3, 16), 0.0004)),
    qconv2d("pooled, rest", QConv2d(2, -3, pool=(2, 2), lo=-3), layer((1, 8, 7, 4), (6, 3, 3, 4))),
    qconv2d("dilated", QConv2d(1, 0, dilation=(2, 2)), layer((1, 9, 8, 4), (4, 3, 3, 4))),
    qconv2d("batch", QConv2d(1, 0, padding=(0, 1, 1, 0)), layer((2, 5, 5, 4), (4, 2, 2, 4))),
    qconv2d("depthwise", QConv2d(-10, 4, padding=SAME, groups=8), layer((1, 6, 5, 8), (8, 3, 3, 1), 0.003)),
    qconv2d("depthwise, wide", QConv2d(-128, -128, padding=SAME, groups=64),
            layer((1, 5, 5, 64), (64, 3, 3, 1), 0.003)),
    qconv2d("depthwise, odd", QConv2d(6, 4, padding=SAME, groups=7), layer((1, 5, 6, 7), (7, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strided", QConv2d(3, 4, padding=(0, 1, 0, 1), stride=(2, 2), groups=16),
            layer((1, 8, 8, 16), (16, 3, 3, 1), 0.003)),
    qconv2d("depthwise, one row", QConv2d(-9, 0, padding=SAME, groups=12), layer((1, 1, 3, 12), (12, 3, 3, 1), 0.003)),
    qconv2d("depthwise, inside", QConv2d(-9, 0, groups=6, lo=-50, hi=60), layer((2, 5, 7, 6), (6, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strides", QConv2d(8, -3, padding=(1, 0, 1, 0), stride=(1, 2), groups=5),
            layer((2, 6, 7, 5), (5, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strides 2", QConv2d(8, -3, padding=(1, 1, 0, 1), stride=(2, 1), groups=8),
            layer((2, 7, 4, 8), (8, 3, 3, 1), 0.003)),
    qconv2d("depthwise, long rows", QConv2d(8, -3, padding=SAME, groups=4), layer((1, 3, 51, 4), (4, 3, 3, 1), 0.003)),
    qconv2d("depthwise, long rows strided", QConv2d(8, -3, padding=(0, 1, 0, 1), stride=(2, 2), groups=4),
            layer((1, 4, 48, 4), (4, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strided odd", QConv2d(8, -3, padding=SAME, stride=(2, 2), groups=6, lo=-70, hi=90),
            layer((2, 5, 5, 6), (6, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strided once", QConv2d(8, -3, padding=SAME, stride=(2, 2), groups=4),
            layer((1, 2, 2, 4), (4, 3, 3, 1), 0.003)),
    qconv2d("depthwise, strided inside", QConv2d(8, -3, stride=(2, 2), groups=8),
            layer((1, 6, 54, 8), (8, 3, 3, 1), 0.003)),
    qconv2d("depthwise, one column", QConv2d(8, -3, padding=SAME, groups=8), layer((1, 5, 1, 8), (8, 3, 3, 1), 0.003)),
    qconv2d("depthwise, 5x3", QConv2d(8, -3, padding=(2, 2, 1, 1), groups=8), layer((1, 7, 4, 8), (8, 5, 3, 1), 0.002)),
    qconv2d("depthwise, 64 taps", QConv2d(8, -3, groups=3), layer((1, 9, 10, 3), (3, 8, 8, 1), 0.0005)),
    qconv2d("depthwise, dilated", QConv2d(8, -3, padding=(2, 2, 1, 1), dilation=(2, 1), groups=4),
            layer((1, 7, 4, 4), (4, 3, 3, 1), 0.002)),
    qconv2d("depthwise, shifted", QConv2d(8, -3, shift=1, padding=SAME, groups=8),
            layer((1, 4, 4, 8), (8, 3, 3, 1), 0.001)),
    qconv2d("depthwise, largest", QConv2d(-128, 0, padding=SAME, groups=4), extreme((1, 4, 4, 4), (4, 3, 3, 1))),
    qconv2d("depthwise, multiplier", QConv2d(3, 4, groups=4), layer((1, 5, 5, 4), (8, 3, 3, 1), 0.003)),
    qconv2d("groups", QConv2d(3, 4, groups=2), layer((1, 5, 5, 8), (6, 3, 3, 4), 0.001)),
    qconv2d("shifted", QConv2d(3, 4, shift=2), layer((1, 4, 4, 4), (4, 1, 1, 4), 0.002)),
    qconv2d("kernel above the image", QConv2d(-3, 4, padding=(2, 2, 2, 2)), layer((1, 3, 2, 4), (4, 5, 5, 4), 0.0006)),
    qconv2d("largest", QConv2d(-128, 0, padding=SAME), extreme((1, 4, 4, 16), (8, 3, 3, 16))),
    qconv2d("deepest", QConv2d(-128, 0, padding=SAME), extreme((1, 2, 3, 128), (4, 3, 3, 128))),
    qconv2d("full parts", QConv2d(0, 3), extreme((1, 1, 5, 130), (5, 1, 1, 130), 2**32 * 100 // (130 * 127 * 128))),
    qconv2d("full parts, steep", QConv2d(0, 3),
            extreme((1, 1, 5, 128), (5, 1, 1, 128), 2**32 * 30000 // (128 * 127 * 128))),
    qconv2d("weights of -128", QConv2d(-128, 3, padding=SAME), lowest((1, 5, 5, 8), (6, 3, 3, 8), 0.0005)),
    qconv2d("weights of -128, one by one", QConv2d(3, -4), lowest((1, 4, 5, 8), (16, 1, 1, 8))),
    qconv2d("weights of -128, pooled", QConv2d(2, -3, pool=(2, 2)), lowest((1, 8, 8, 4), (6, 3, 3, 4))),
    qconv2d("weights of -128, depthwise", QConv2d(-10, 4, padding=SAME, groups=8),
            lowest((1, 6, 5, 8), (8, 3, 3, 1), 0.003)),
    qconv2d("weights of -128, depthwise 5x3", QConv2d(8, -3, padding=(2, 2, 1, 1), groups=8),
            lowest((1, 7, 4, 8), (8, 5, 3, 1), 0.002)),
    qconv2d("weights of -128, groups", QConv2d(3, 4, groups=2), lowest((1, 5, 5, 8), (6, 3, 3, 4), 0.001)),
    qconv2d("deep", QConv2d(-128, 0, padding=SAME), layer((1, 3, 3, 64), (6, 3, 3, 64), 0.0001)),
)  # fmt: skip

EDGES = (
    Case(
        "quantize halves and limits",
        Quantize(0.5, -3),
        values([0.0, 0.25, 0.75, -0.25, 1.25, 62.9, 65.0, -62.4, -63.0, 1e9, -1e9, np.inf, -np.inf, np.nan]),
        lambda x: ((x * 2).round().nan_to_num(0.0, posinf=1e9, neginf=-1e9) - 3).clamp(-128, 127).to(torch.int8),
    ),
    Case(
        "quantize many",
        Quantize(0.05, 10),
        normal((20, 30)),
        lambda x: ((x * torch.tensor(1 / 0.05)).round() + 10).clamp(-128, 127).to(torch.int8),
    ),
    Case(
        "quantize as many fours as the zero point",  # a compiler may have both in one register
        Quantize(0.05, 4),
        normal((1, 16)),
        lambda x: ((x * torch.tensor(1 / 0.05)).round() + 4).clamp(-128, 127).to(torch.int8),
    ),
    Case(
        "quantize beside halves",
        Quantize(0.0137, -7),
        lambda rng: (around((np.arange(-300, 300) + 0.5) * 0.0137),),
        lambda x: ((x * torch.tensor(1 / 0.0137)).round() - 7).clamp(-128, 127).to(torch.int8),
    ),
    Case(
        "dequantize",
        Dequantize(0.1, 5),
        lambda rng: (np.arange(-128, 128).astype(np.int8),),
        lambda q: (q.int() - 5).float() * torch.tensor(0.1),
    ),
    Case(
        "dequantize seven",
        Dequantize(0.03, -128),
        lambda rng: (np.array([-128, -127, -1, 0, 1, 126, 127], np.int8),),
        lambda q: (q.int() + 128).float() * torch.tensor(0.03),
    ),
)  # fmt: skip

CASES = (*QLINEAR, *QCONV2D, *EDGES)

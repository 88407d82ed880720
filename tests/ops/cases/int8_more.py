"""Cases of int8 transposed convolutions, matrix products, attention, norms and bilinear resampling.

The torch side has 64-bit integers, and computes what docs/arithmetic.md says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Array, Quant, Shape
from baretorch.ops.attention import Attention
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.int8.qattention import ABSENT, NONE, TABLE, QAttention, attention_of
from baretorch.ops.int8.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.int8.qmatmul import QMatmul
from baretorch.ops.int8.qnorm import QNorm
from baretorch.ops.int8.qsoftmax import LOGS, QLogSoftmax, log_softmax_of
from baretorch.ops.int8.qupsample import QUpsampleBilinear2d
from baretorch.ops.int8.qwindows import QAvgWindows, QMaxWindows, Spans
from baretorch.ops.logic import Le, Where
from tests.ops.case import Case, Inputs, nchw, nhwc
from tests.ops.cases.int8 import extreme, layer, lowest, requantized
from tests.ops.cases.int8_small import octets, rounded


def qconv_transpose2d(name: str, op: QConvTranspose2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, multiplier: torch.Tensor) -> torch.Tensor:
        out, kh, kw, depth = weight.shape
        taps = weight.double().reshape(op.groups, -1, kh, kw, depth).permute(0, 4, 1, 2, 3)
        whole = F.conv_transpose2d(
            nchw(x.double() - op.x_zero),
            taps.reshape(op.groups * depth, out // op.groups, kh, kw),
            None,
            op.stride,
            groups=op.groups,
            dilation=op.dilation,
        )
        acc = nhwc(F.pad(whole, (-left, -right, -top, -bottom)))
        return requantized(acc.round().long() + bias, multiplier, op)

    return Case(f"qconv_transpose2d {name}", op, inputs, run, activations=1)


def qmatmul(name: str, op: QMatmul, a: Shape, b: Shape) -> Case:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        left, right = x.double() - op.a_zero, y.double() - op.b_zero
        left = left.permute(op.a_dims) if op.a_dims else left
        right = right.permute(op.b_dims) if op.b_dims else right
        acc = torch.matmul(left, right).round().long()
        made = rounded(acc, op.multiplier, op.shift, op.zero).clamp(op.lo, op.hi).to(torch.int8)
        return made.permute(op.y_dims) if op.y_dims else made

    return Case(f"qmatmul {name}", op, octets(a, b), run)


def normal(shape: Shape, spread: int = 256, weights: float = 1.0) -> Inputs:
    """Bytes of some spread, weights and biases that fill most of the range."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        channels = shape[2] * shape[3]
        return (
            rng.integers(-128, -128 + spread, shape).astype(np.int8),
            (rng.uniform(-50, 50, channels) * weights * 2**18).astype(np.int32),
            (rng.uniform(-20, 20, channels) * 2**8).astype(np.int32),
        )

    return build


def qnorm(name: str, op: QNorm, inputs: Inputs) -> Case:
    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        u = x.long() - op.x_zero
        n = x.shape[1] * x.shape[3]
        total = u.sum((1, 3), keepdim=True) if op.centred else torch.zeros((), dtype=torch.long)
        spread = n * (u * u).sum((1, 3), keepdim=True) - total * total
        d = ((spread << 16) + op.eps).clamp(min=1 << 16)
        shift = torch.zeros_like(d)
        for _ in range(31):
            shift = shift + torch.where(d >= 1 << 32, 1, 0) - torch.where(d < 1 << 30, 1, 0)
            d = torch.where(d >= 1 << 32, d >> 2, torch.where(d < 1 << 30, d << 2, d))
        factor = torch.div(0xFFFFFFFF, d.double().sqrt().floor().long(), rounding_mode="floor") << 5
        value = torch.bitwise_right_shift((n * u - total) * factor, 7 + shift)
        places = x.shape[2:]
        scaled = ((value * weight.long().reshape(places) + (1 << 31)) >> 32) + bias.reshape(places)
        return (scaled >> 8).clamp(-128, 127).to(torch.int8)

    return Case(f"qnorm {name}", op, inputs, run, activations=1)


def attended(scale: float, causal: bool = False) -> QAttention:
    return attention_of(Attention(scale, causal), Quant((0.04,), (5,)), Quant((0.03,), (-9,)), V, Quant((0.02,), (-7,)))


V = Quant((0.025,), (11,))


def qattention(name: str, op: QAttention, inputs: Inputs, activations: int | None = None) -> Case:
    table = torch.from_numpy(TABLE.astype(np.int64))

    def run(*given: torch.Tensor) -> torch.Tensor:
        orders = (op.q_dims, op.k_dims, op.v_dims)
        q, k, v = (t.double().permute(d) if d else t.double() for t, d in zip(given, orders, strict=False))
        sums = torch.matmul(q - op.q_zero, (k - op.k_zero).transpose(-1, -2)).round().long()
        scores = rounded(sums, op.score_multiplier, op.score_shift, 0)
        if len(given) > 3 and given[3].dtype is torch.bool:
            scores = scores.masked_fill(~given[3], NONE)
        elif len(given) > 3:
            scores = (scores + given[3].long()).masked_fill(given[3] == ABSENT, NONE)
        if op.causal:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~seen, NONE)
        largest = scores.amax(-1, keepdim=True)
        far = largest - scores
        parts = table[far % 256] >> (far // 256).clamp(max=16)
        parts = parts.masked_fill((largest <= NONE) | (far >= 4096), 0)
        inverse = torch.div(0xFFFFFFFF, parts.sum(-1, keepdim=True).clamp(min=1), rounding_mode="floor")
        weights = ((parts * inverse >> 17) + 1) >> 1
        acc = torch.matmul(weights.double(), v - op.v_zero).round().long()
        y = rounded(acc, op.multiplier, op.shift, op.zero).clamp(-128, 127).to(torch.int8)
        return y.permute(op.y_dims) if op.y_dims else y

    return Case(f"qattention {name}", op, inputs, run, activations)


def with_mask(inputs: Inputs, mask: Shape, dtype: str) -> Inputs:
    """Queries, keys and values with a mask that leaves some keys out, and for one query all."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        out = rng.random(mask) < 0.3
        out.reshape(-1, mask[-1])[0] = True
        added = np.where(out, ABSENT, rng.integers(-600, 600, mask))
        return (*inputs(rng), ~out if dtype == "bool" else added.astype(dtype))

    return build


def qbilinear(name: str, op: QUpsampleBilinear2d, shape: Shape) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        rows, down = op.sources(0, x.shape[1])
        columns, right = op.sources(1, x.shape[2])
        y = torch.zeros((x.shape[0], *op.size, x.shape[3]), dtype=torch.long)
        for i, (top, b) in enumerate(zip(rows.tolist(), down.tolist(), strict=True)):
            for j, (left, r) in enumerate(zip(columns.tolist(), right.tolist(), strict=True)):
                below, beside = min(top + 1, x.shape[1] - 1), min(left + 1, x.shape[2] - 1)
                corners = x[:, [top, top, below, below], [left, beside, left, beside]].long()
                shares = torch.tensor([(2048 - b) * (2048 - r), (2048 - b) * r, b * (2048 - r), b * r])
                y[:, i, j] = ((corners * shares[:, None]).sum(1) + (1 << 21)) >> 22
        return y.to(torch.int8)

    return Case(f"qupsample_bilinear2d {name}", op, octets(shape), run)


TWO = (2, 2)
QCONV_TRANSPOSE2D = (
    qconv_transpose2d("doubled", QConvTranspose2d(3, -4, stride=TWO), layer((1, 3, 4, 5), (7, 2, 2, 5))),
    qconv_transpose2d("overlapping", QConvTranspose2d(-128, 9, stride=TWO, padding=(1, 1, 1, 1)),
                      layer((1, 4, 3, 8), (4, 4, 4, 8), 0.0005)),
    qconv_transpose2d("output padding", QConvTranspose2d(5, 0, stride=TWO, padding=(1, 0, 1, 0)),
                      layer((2, 3, 3, 4), (3, 3, 3, 4))),
    qconv_transpose2d("beyond every input", QConvTranspose2d(5, 0, stride=(3, 3), padding=(0, -2, 0, -2)),
                      layer((1, 2, 2, 3), (2, 2, 2, 3), 0.002)),
    qconv_transpose2d("dilated", QConvTranspose2d(-7, 1, stride=(2, 3), dilation=(3, 2)),
                      layer((1, 3, 3, 4), (4, 3, 3, 4))),
    qconv_transpose2d("stride and dilation alike", QConvTranspose2d(-7, 1, stride=TWO, dilation=TWO),
                      layer((1, 3, 3, 4), (4, 3, 2, 4))),
    qconv_transpose2d("groups", QConvTranspose2d(2, 4, stride=TWO, groups=2), layer((1, 3, 4, 6), (4, 3, 3, 3))),
    qconv_transpose2d("depthwise", QConvTranspose2d(2, 4, stride=TWO, groups=5, lo=4),
                      layer((1, 3, 4, 5), (5, 3, 3, 1))),
    qconv_transpose2d("weights of -128", QConvTranspose2d(3, -4, stride=TWO), lowest((1, 3, 4, 8), (6, 2, 2, 8))),
    qconv_transpose2d("a signal", QConvTranspose2d(0, 0, stride=(1, 4)), layer((1, 1, 9, 3), (4, 1, 5, 3))),
    qconv_transpose2d("shifted", QConvTranspose2d(0, 0, 2), layer((1, 2, 2, 2), (2, 1, 1, 2), 0.004)),
    qconv_transpose2d("largest", QConvTranspose2d(127, 0, stride=TWO), extreme((1, 3, 3, 16), (4, 3, 3, 16))),
)  # fmt: skip

PRODUCT = QMatmul(-5, 7, round(0.0008 * 2**32), 0, 3)
QMATMUL = (
    qmatmul("plain", PRODUCT, (5, 6), (6, 7)),
    qmatmul("one", PRODUCT, (1, 1), (1, 1)),
    qmatmul("batches", PRODUCT, (2, 3, 4, 9), (2, 3, 9, 5)),
    qmatmul("repeated", PRODUCT, (3, 4, 5), (5, 6)),
    qmatmul("limits", replace(PRODUCT, lo=-20, hi=50), (4, 20), (20, 4)),
    qmatmul("heads of tokens", replace(PRODUCT, a_dims=(0, 2, 1, 3), b_dims=(0, 2, 3, 1)), (1, 5, 2, 8), (1, 6, 2, 8)),
    qmatmul("back to tokens", replace(PRODUCT, b_dims=(0, 2, 1, 3), y_dims=(0, 2, 1, 3)), (1, 2, 5, 6), (1, 6, 2, 8)),
    qmatmul("shifted", replace(PRODUCT, shift=2), (3, 4), (4, 3)),
    qmatmul("long", replace(PRODUCT, multiplier=round(0.0001 * 2**32)), (2, 400), (400, 3)),
)

QNORM = (
    qnorm("rows", QNorm(3, 65536000), normal((4, 1, 1, 64))),
    qnorm("one number", QNorm(0, 65536), normal((3, 1, 1, 1))),
    qnorm("two numbers", QNorm(-128, 0), normal((8, 1, 1, 2))),
    qnorm("odd", QNorm(5, 809041920), normal((2, 1, 1, 37))),
    qnorm("all equal", QNorm(5, 0), normal((2, 1, 1, 16), 1)),
    qnorm("hardly different", QNorm(5, 196608), normal((6, 1, 1, 32), 2)),
    qnorm("long", QNorm(0, 458752), normal((1, 1, 1, 5000), 256, 0.02)),
    qnorm("large eps", QNorm(0, 1 << 60), normal((2, 1, 1, 16))),
    qnorm("large weights", QNorm(0, 655360), normal((2, 1, 1, 16), 256, 150.0)),
    qnorm("not centred", QNorm(-20, 32768000, centred=False), normal((3, 1, 1, 48))),
    qnorm("groups", QNorm(9, 131072000), normal((2, 20, 3, 4))),
    qnorm("instances", QNorm(9, 131072000), normal((2, 30, 6, 1))),
)

EDGE = 1 / 8**0.5
QATTENTION = (
    qattention("heads", attended(EDGE), octets((1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 4))),
    qattention("one key", attended(EDGE), octets((1, 1, 3, 4), (1, 1, 1, 4), (1, 1, 1, 4))),
    qattention("tokens", replace(attended(EDGE), q_dims=(0, 2, 1, 3), k_dims=(0, 2, 1, 3), v_dims=(0, 2, 1, 3),
                                 y_dims=(0, 2, 1, 3)), octets((1, 7, 2, 8), (1, 6, 2, 8), (1, 6, 2, 8))),
    qattention("causal", attended(EDGE, True), octets((2, 6, 8), (2, 6, 8), (2, 6, 8))),
    qattention("causal, more keys", attended(EDGE, True), octets((1, 4, 8), (1, 7, 8), (1, 7, 8))),
    qattention("causal, fewer keys", attended(EDGE, True), octets((1, 7, 8), (1, 4, 8), (1, 4, 8))),
    qattention("flat", attended(0.001), octets((1, 4, 8), (1, 100, 8), (1, 100, 8))),
    qattention("steep", attended(3.0), octets((1, 4, 8), (1, 20, 8), (1, 20, 8))),
    qattention("masked", attended(EDGE), with_mask(octets((2, 5, 8), (2, 6, 8), (2, 6, 8)), (5, 6), "int16"), 3),
    qattention("masked at run time", attended(EDGE),
               with_mask(octets((2, 5, 8), (2, 6, 8), (2, 6, 8)), (2, 1, 6), "int16")),
    qattention("masked per head", attended(EDGE),
               with_mask(octets((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8)), (3, 1, 6), "int16"), 3),
    qattention("constant keys and values", attended(EDGE), octets((1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 4)), 1),
    qattention("chosen", attended(EDGE), with_mask(octets((2, 5, 8), (2, 6, 8), (2, 6, 8)), (2, 1, 6), "bool")),
    qattention("chosen and causal", attended(EDGE, True),
               with_mask(octets((2, 6, 8), (2, 6, 8), (2, 6, 8)), (6, 6), "bool")),
)  # fmt: skip

QBILINEAR = (
    qbilinear("doubled", QUpsampleBilinear2d((8, 10), (0.5, 0.5)), (1, 4, 5, 3)),
    qbilinear("corners", QUpsampleBilinear2d((7, 9), (0.5, 0.5), align_corners=True), (2, 4, 5, 2)),
    qbilinear("uneven", QUpsampleBilinear2d((5, 7), (0.6, 3 / 7)), (1, 3, 3, 4)),
    qbilinear("smaller", QUpsampleBilinear2d((2, 3), (2.0, 5 / 3)), (1, 4, 5, 3)),
    qbilinear("one way", QUpsampleBilinear2d((4, 10), (1.0, 0.5)), (1, 4, 5, 1)),
    qbilinear("from one pixel", QUpsampleBilinear2d((3, 3), (1 / 3, 1 / 3)), (1, 1, 1, 4)),
)


def qavg_windows(name: str, op: QAvgWindows, shape: Shape, factors: list[list[float]]) -> Case:
    multiplier = (np.array(factors) * 2**32).astype(np.int32)

    def run(x: torch.Tensor, multipliers: torch.Tensor) -> torch.Tensor:
        u = x.long() - op.x_zero
        y = torch.zeros((len(x), len(op.rows), len(op.columns), x.shape[3]), dtype=torch.int8)
        for i, (a, b) in enumerate(op.rows):
            for j, (c, d) in enumerate(op.columns):
                acc = u[:, a:b, c:d].sum((1, 2))
                y[:, i, j] = rounded(acc, int(multipliers[i, j]), op.shift, op.zero).clamp(-128, 127).to(torch.int8)
        return y

    return Case(f"qavg_windows {name}", op, lambda rng: (*octets(shape)(rng), multiplier), run, activations=1)


def qmax_windows(name: str, op: QMaxWindows, shape: Shape) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.stack(
            [torch.stack([x[:, a:b, c:d].amax((1, 2)) for c, d in op.columns], 1) for a, b in op.rows], 1
        )

    return Case(f"qmax_windows {name}", op, octets(shape), run)


def qlog_softmax(name: str, op: QLogSoftmax, inputs: Inputs) -> Case:
    table, logs = (torch.from_numpy(t.astype(np.int64)) for t in (op.table(), LOGS))

    def run(x: torch.Tensor) -> torch.Tensor:
        far = x.long().amax(-1, keepdim=True) - x.long()
        total = table[far].sum(-1, keepdim=True)
        power = total.double().log2().floor().long()
        high = total << (31 - power)
        index, rest = high >> 23 & 255, high >> 8 & 0x7FFF
        log = power * 726817 + (logs[index] + ((logs[index + 1] - logs[index]) * rest >> 15) << 4) - 11629055
        acc = -far * round(op.scale * 2**20) - log
        return rounded(acc, op.multiplier, op.shift, op.zero).clamp(-128, 127).to(torch.int8)

    return Case(f"qlog_softmax {name}", op, inputs, run)


UNEVEN: Spans = ((0, 2), (1, 4), (3, 5))
EVENLY = [[1 / 6, 1 / 9, 1 / 6]] * 3
QWINDOWS = (
    qavg_windows("uneven", QAvgWindows(UNEVEN, UNEVEN, 5, 0, -3), (2, 5, 5, 3), EVENLY),
    qavg_windows("one", QAvgWindows(((0, 5),), ((0, 7),), -128, 0, 100), (1, 5, 7, 4), [[1 / 35]]),
    qavg_windows("shifted", QAvgWindows(UNEVEN, ((0, 3),), 5, 2, -3), (1, 5, 3, 1), [[0.1], [0.2], [0.05]]),
    qmax_windows("uneven", QMaxWindows(UNEVEN, UNEVEN), (2, 5, 5, 3)),
    qmax_windows("one", QMaxWindows(((0, 5),), ((0, 7),)), (1, 5, 7, 4)),
)

COARSE, FINE = Quant((0.06,), (127,)), Quant((0.004,), (100,))
QLOG_SOFTMAX = (
    qlog_softmax("rows", log_softmax_of(Quant((0.05,), (0,)), COARSE), octets((3, 12))),
    qlog_softmax("steep", log_softmax_of(Quant((1.0,), (0,)), Quant((2.0,), (127,))), octets((4, 10))),
    qlog_softmax("flat", log_softmax_of(Quant((0.001,), (0,)), FINE), octets((4, 3))),
    qlog_softmax("one", log_softmax_of(Quant((0.05,), (0,)), COARSE), octets((4, 1))),
    qlog_softmax("certain", log_softmax_of(Quant((0.5,), (0,)), Quant((0.0001,), (127,))), octets((9, 4))),
    qlog_softmax("long", log_softmax_of(Quant((0.02,), (0,)), COARSE), octets((2, 3000))),
)

CHOICES = (
    Case("minimum int8", Minimum(), octets((3, 7), (3, 7)), torch.minimum),
    Case("maximum int8", Maximum(), octets((3, 1, 7), (5, 1)), torch.maximum),
    Case("less or equal int8", Le(), octets((3, 7), (3, 7)), torch.le),
    Case(
        "where int8 broadcast",
        Where(),
        lambda rng: (rng.random((4, 5)) < 0.5, *octets((4, 5), (5,))(rng)),
        torch.where,
    ),
)

CASES = (*QCONV_TRANSPOSE2D, *QMATMUL, *QNORM, *QATTENTION, *QBILINEAR, *QWINDOWS, *QLOG_SOFTMAX, *CHOICES)

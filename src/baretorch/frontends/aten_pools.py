"""Rows of the ATen table: pooling and reductions."""

from __future__ import annotations

from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Ints, Lowering, four, image, pair, sides
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean


def max_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
) -> str:
    image(g, "max_pool2d", x)
    op = MaxPool2d(pair(kernel), pair(stride or kernel), four(sides(padding)), pair(dilation), ceil_mode)
    return g.nhwc(op, x)


def avg_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> str:
    image(g, "avg_pool2d", x)
    around = four(sides(padding))
    op = AvgPool2d(pair(kernel), pair(stride or kernel), around, ceil_mode, count_include_pad, divisor or 0)
    return g.nhwc(op, x)


def adaptive_avg_pool2d(g: Lowering, x: str, size: Ints) -> str:
    image(g, "adaptive_avg_pool2d", x)
    have, want = g.shape(x)[2:], pair(size)
    if want == (1, 1):
        return g.b.add(Mean((2, 3), True), x)
    if any(h % w for h, w in zip(have, want, strict=True)):
        raise CompileError(
            "adaptive_avg_pool2d: windows of unequal size are not supported",
            have=f"{g[x]} to {want[0]} x {want[1]}",
            need="an output size that divides the input's height and width",
        )
    kernel = (have[0] // want[0], have[1] // want[1])
    return g.nhwc(AvgPool2d(kernel, kernel, (0, 0, 0, 0)), x)


def mean(g: Lowering, x: str, axes: Ints | None = None, keepdim: bool = False, dtype: Any = None) -> str:
    if axes is None or len(axes) == 0:
        axes = range(len(g.shape(x)))
    return g.b.add(Mean(tuple(sorted(g.axis(x, a) for a in axes)), keepdim), x)

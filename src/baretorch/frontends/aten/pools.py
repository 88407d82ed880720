"""Rows of the ATen table: pooling."""

from __future__ import annotations

from functools import partial

from baretorch.frontends.aten.rows import Row, Scales
from baretorch.frontends.lowering import Ints, Lowering, sides, spatial
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean


def max_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
    dims: int = 2,
) -> str:
    size, step, reach = (spatial(v, dims, 1) for v in (kernel, stride or kernel, dilation))
    op = MaxPool2d(size, step, sides(spatial(padding, dims, 0)), reach, ceil_mode)
    return g.nhwc(op, x, dims=dims)


def avg_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
    dims: int = 2,
) -> str:
    size, step = (spatial(v, dims, 1) for v in (kernel, stride or kernel))
    around = sides(spatial(padding, dims, 0))
    return g.nhwc(AvgPool2d(size, step, around, ceil_mode, count_include_pad, divisor or 0), x, dims=dims)


def adaptive_avg_pool(g: Lowering, x: str, size: Ints) -> str:
    """adaptive_avg_pool1d or 2d: the size tells. Windows of equal size are a plain pool, a single one is a mean."""
    dims, rank = len(size), len(g.shape(x))
    if all(n == 1 for n in size):
        return g.b.add(Mean(tuple(range(rank - dims, rank)), True), x)
    kernel = equal_windows(g, x, size)
    if kernel:
        return avg_pool2d(g, x, kernel, dims=dims)
    return g.nhwc(AdaptiveAvgPool2d(spatial(size, dims, 1)), x, dims=dims)


def adaptive_max_pool(g: Lowering, x: str, size: Ints) -> str:
    """adaptive_max_pool1d or 2d, without the indices."""
    kernel = equal_windows(g, x, size)
    if kernel:
        return max_pool2d(g, x, kernel, dims=len(size))
    return g.nhwc(AdaptiveMaxPool2d(spatial(size, len(size), 1)), x, dims=len(size))


def equal_windows(g: Lowering, x: str, size: Ints) -> list[int] | None:
    """The size of every window along these last dimensions, if all have the same and none overlap."""
    have = g.shape(x)[-len(size) :]
    if any(n == 0 or h % n for h, n in zip(have, size, strict=True)):
        return None
    return [h // n for h, n in zip(have, size, strict=True)]


ROWS: dict[str, Row] = {
    "aten::max_pool1d": Row(partial(max_pool2d, dims=1), (MaxPool2d,), Scales.SAME),
    "aten::max_pool2d": Row(max_pool2d, (MaxPool2d,), Scales.SAME),
    "aten::max_pool2d_with_indices": Row(max_pool2d, (MaxPool2d,)),
    "aten::avg_pool1d": Row(partial(avg_pool2d, dims=1), (AvgPool2d,), Scales.OWN),
    "aten::avg_pool2d": Row(avg_pool2d, (AvgPool2d,), Scales.OWN),
    "aten::adaptive_avg_pool1d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean), Scales.OWN),
    "aten::adaptive_avg_pool2d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean), Scales.OWN),
    "aten::_adaptive_avg_pool2d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean)),
    "aten::adaptive_max_pool1d": Row(adaptive_max_pool, (MaxPool2d, AdaptiveMaxPool2d), Scales.SAME),
    "aten::adaptive_max_pool2d": Row(adaptive_max_pool, (MaxPool2d, AdaptiveMaxPool2d), Scales.SAME),
}

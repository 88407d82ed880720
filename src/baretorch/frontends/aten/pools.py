"""Rows of the ATen table: pooling of signals, images and volumes."""

from __future__ import annotations

from functools import partial

from baretorch.frontends.aten.rows import Row, Scales
from baretorch.frontends.aten.volumes import pooled, triple
from baretorch.frontends.lowering import Ints, Lowering, pair, sides, spatial
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


def max_pool3d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
) -> str:
    (kd, *k), (sd, *s), (pd, ph, pw), (dd, *d) = map(triple, (kernel, stride or kernel, padding, dilation))
    frame = MaxPool2d(pair(k), pair(s), (ph, ph, pw, pw), pair(d), ceil_mode)
    return pooled(g, x, frame, MaxPool2d((kd, 1), (sd, 1), (pd, pd, 0, 0), (dd, 1), ceil_mode))


def avg_pool3d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> str:
    """The numbers of elements multiply, so the average of averages is the average. A divisor divides once."""
    (kd, *k), (sd, *s), (pd, ph, pw) = map(triple, (kernel, stride or kernel, padding))
    frame = AvgPool2d(pair(k), pair(s), (ph, ph, pw, pw), ceil_mode, count_include_pad, 1 if divisor else 0)
    depth = AvgPool2d((kd, 1), (sd, 1), (pd, pd, 0, 0), ceil_mode, count_include_pad, divisor or 0)
    return pooled(g, x, frame, depth)


def adaptive_avg_pool(g: Lowering, x: str, size: Ints) -> str:
    """Lower a pool over as many dimensions as `size` has. Windows of equal size are a plain pool, one is a mean."""
    dims, rank = len(size), len(g.shape(x))
    if all(n == 1 for n in size):
        return g.b.add(Mean(tuple(range(rank - dims, rank)), True), x)
    kernel = equal_windows(g, x, size)
    if kernel:
        return avg_pool3d(g, x, kernel) if dims == 3 else avg_pool2d(g, x, kernel, dims=dims)
    return _adaptive(g, AdaptiveAvgPool2d, x, size)


def adaptive_max_pool(g: Lowering, x: str, size: Ints) -> str:
    """Lower a pool over as many dimensions as `size` has, without the indices."""
    kernel = equal_windows(g, x, size)
    if kernel:
        return max_pool3d(g, x, kernel) if len(size) == 3 else max_pool2d(g, x, kernel, dims=len(size))
    return _adaptive(g, AdaptiveMaxPool2d, x, size)


def _adaptive(g: Lowering, pool: type[AdaptiveAvgPool2d | AdaptiveMaxPool2d], x: str, size: Ints) -> str:
    if len(size) == 3:
        d, h, w = size
        return pooled(g, x, pool((h, w)), pool((d, h * w)))
    return g.nhwc(pool(spatial(size, len(size), 1)), x, dims=len(size))


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
    "aten::max_pool3d": Row(max_pool3d, (MaxPool2d,), Scales.SAME),
    "aten::max_pool3d_with_indices": Row(max_pool3d, (MaxPool2d,)),
    "aten::avg_pool1d": Row(partial(avg_pool2d, dims=1), (AvgPool2d,), Scales.OWN),
    "aten::avg_pool2d": Row(avg_pool2d, (AvgPool2d,), Scales.OWN),
    "aten::avg_pool3d": Row(avg_pool3d, (AvgPool2d,), Scales.OWN),
    "aten::adaptive_avg_pool1d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean), Scales.OWN),
    "aten::adaptive_avg_pool2d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean), Scales.OWN),
    "aten::_adaptive_avg_pool2d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean)),
    "aten::adaptive_avg_pool3d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean), Scales.OWN),
    "aten::_adaptive_avg_pool3d": Row(adaptive_avg_pool, (AvgPool2d, AdaptiveAvgPool2d, Mean)),
    "aten::adaptive_max_pool1d": Row(adaptive_max_pool, (MaxPool2d, AdaptiveMaxPool2d), Scales.SAME),
    "aten::adaptive_max_pool2d": Row(adaptive_max_pool, (MaxPool2d, AdaptiveMaxPool2d), Scales.SAME),
    "aten::adaptive_max_pool3d": Row(adaptive_max_pool, (MaxPool2d, AdaptiveMaxPool2d), Scales.SAME),
}

"""Rows of the ATen table: pooling of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.volumes import pool_volume
from baretorch.frontends.lowering import Ints, Lowering, spatial
from baretorch.frontends.windows import Windows, make_windows
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean


def pool(
    g: Lowering,
    x: str,
    windows: Windows,
    of: Callable[[Windows], MaxPool2d | AvgPool2d],
    of_frames: Callable[[Windows], AvgPool2d] | None = None,
) -> str:
    """Pool signals, images or volumes, by the operator `of` these windows. A volume is pooled frame by frame, by
    `of_frames` if it is given, and then along the depth."""
    if windows.dims == 3:
        return pool_volume(g, x, (of_frames or of)(windows.frame), of(windows.depth))
    return g.nhwc(of(windows), x, dims=windows.dims)


def max_pool(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
    dims: int = 2,
) -> str:
    windows = make_windows(kernel, stride or kernel, padding, dilation, dims)
    return pool(g, x, windows, lambda w: MaxPool2d(w.size, w.step, w.around, w.reach, ceil_mode))


def avg_pool(
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
    """Lower an average. The numbers of elements multiply, so that of a volume is the average of averages, but a given
    divisor divides once."""

    def average(w: Windows, divisor: int = divisor or 0) -> AvgPool2d:
        return AvgPool2d(w.size, w.step, w.around, ceil_mode, count_include_pad, divisor)

    windows = make_windows(kernel, stride or kernel, padding, dims=dims)
    return pool(g, x, windows, average, partial(average, divisor=1) if divisor else None)


def adaptive_avg_pool(g: Lowering, x: str, size: Ints) -> str:
    """Lower a pool over as many dimensions as `size` has. Windows of equal size are a plain pool, one is a mean."""
    dims, rank = len(size), len(g.shape(x))
    if all(n == 1 for n in size):
        return g.b.add(Mean(tuple(range(rank - dims, rank)), True), x)
    kernel = equal_windows(g, x, size)
    if kernel:
        return avg_pool(g, x, kernel, dims=dims)
    return _adaptive(g, AdaptiveAvgPool2d, x, size)


def adaptive_max_pool(g: Lowering, x: str, size: Ints) -> str:
    """Lower a pool over as many dimensions as `size` has, without the indices."""
    kernel = equal_windows(g, x, size)
    if kernel:
        return max_pool(g, x, kernel, dims=len(size))
    return _adaptive(g, AdaptiveMaxPool2d, x, size)


def _adaptive(g: Lowering, pool: type[AdaptiveAvgPool2d | AdaptiveMaxPool2d], x: str, size: Ints) -> str:
    if len(size) == 3:
        d, h, w = size
        return pool_volume(g, x, pool((h, w)), pool((d, h * w)))
    return g.nhwc(pool(spatial(size, len(size), 1)), x, dims=len(size))


def equal_windows(g: Lowering, x: str, size: Ints) -> list[int] | None:
    """Return the size of every window along these last dimensions if all are equal and none overlap."""
    have = g.shape(x)[-len(size) :]
    if any(n == 0 or h % n for h, n in zip(have, size, strict=True)):
        return None
    return [h // n for h, n in zip(have, size, strict=True)]


ROWS: dict[str, AtenRow] = {
    **rows("max_pool1d", partial(max_pool, dims=1), MaxPool2d),
    **rows("max_pool2d max_pool2d_with_indices", max_pool, MaxPool2d),
    **rows("max_pool3d max_pool3d_with_indices", partial(max_pool, dims=3), MaxPool2d),
    **rows("avg_pool1d", partial(avg_pool, dims=1), AvgPool2d),
    **rows("avg_pool2d", avg_pool, AvgPool2d),
    **rows("avg_pool3d", partial(avg_pool, dims=3), AvgPool2d),
    **rows(
        "adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool3d",
        adaptive_avg_pool,
        AvgPool2d,
        AdaptiveAvgPool2d,
        Mean,
    ),
    **rows(
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", adaptive_max_pool, MaxPool2d, AdaptiveMaxPool2d
    ),
}

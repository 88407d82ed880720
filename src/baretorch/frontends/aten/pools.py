"""Rows of the ATen table: pooling of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Literal

import numpy as np

from baretorch.frontends.aten.index import take
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.volumes import pool_volume
from baretorch.frontends.lowering import Ints, Lowering, Result, spatial
from baretorch.frontends.untrusted import ROOM
from baretorch.frontends.windows import Windows, make_windows
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Add
from baretorch.ops.index import IndexSelect, Scatter
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.ops.scan import ArgMax


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


def max_pool_with_indices(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
    dims: int = 2,
) -> Result:
    y = max_pool(g, x, kernel, stride, padding, dilation, ceil_mode, dims)
    taps = make_windows(kernel, stride or kernel, padding, dilation, dims).taps(g.shape(x)[-dims:], g.shape(y)[-dims:])
    return with_indices(g, x, y, taps)


def with_indices(
    g: Lowering, x: str, y: str, taps: Sequence[Sequence[Ints]], order: Literal["C", "F"] = "C"
) -> tuple[str, ...]:
    """Return the maxima `y`, and where each is among the elements of x's last dimensions: the first of equal ones. One
    of both that is not read vanishes. `taps` are the elements of each window along each of these dimensions.

    A table lists the elements of all windows; the last one of a smaller window is repeated. A table that is too large
    for any microcontroller leaves the indices out."""
    sizes = g.shape(x)[-len(taps) :]
    longest = [max(map(len, windows)) for windows in taps]
    if 4 * prod(longest) * g[y].count > ROOM:
        return (y,)
    table = np.zeros((1, 1), np.int32)
    for size, most, windows in zip(sizes, longest, taps, strict=True):
        own = np.array([[*w, *[w[-1]] * (most - len(w))] for w in windows], np.int32)
        table = (table[:, None, :, None] * size + own[:, None, :]).reshape(len(table) * len(own), -1)
    parts = take(g, g.reshape(x, (g[x].count // prod(sizes), prod(sizes))), 1, table)
    first = g.b.const("first", np.arange(0, table.size, table.shape[1]))
    at = g.b.add(Add(), g.b.add(ArgMax(2, False), parts), first)
    numbers = np.arange(prod(sizes), dtype=np.int32).reshape(sizes, order=order).reshape(-1)
    index = g.b.add(IndexSelect(0), g.b.const("elements", numbers[table.reshape(-1)]), at)
    return y, cast(g, g.reshape(index, g.shape(y)), DType.INT64)


def max_unpool(g: Lowering, x: str, index: str, size: Ints, *_: Ints) -> str:
    """Put elements where the indices of a max pool say; all others are 0."""
    outer = g.shape(x)[: -len(size)]
    rows = (prod(outer), g[x].count // prod(outer))
    nothing = g.b.const("nothing", np.zeros((rows[0], prod(size)), np.float32))
    return g.reshape(g.b.add(Scatter(1), nothing, g.reshape(index, rows), g.reshape(x, rows)), (*outer, *size))


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


def adaptive_max_pool(g: Lowering, x: str, size: Ints) -> Result:
    """Lower a pool over as many dimensions as `size` has, and the indices."""
    kernel = equal_windows(g, x, size)
    y = max_pool(g, x, kernel, dims=len(size)) if kernel else _adaptive(g, AdaptiveMaxPool2d, x, size)
    sides = zip(g.shape(x)[-len(size) :], size, strict=True)
    return with_indices(g, x, y, [[range(i * s // n, -(-(i + 1) * s // n)) for i in range(n)] for s, n in sides])


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


INDICES = (ArgMax, Add, IndexSelect)

ROWS: dict[str, AtenRow] = {
    **rows("max_pool1d", partial(max_pool, dims=1), MaxPool2d),
    **rows("max_pool2d", max_pool, MaxPool2d),
    **rows("max_pool3d", partial(max_pool, dims=3), MaxPool2d),
    **rows("max_pool1d_with_indices", partial(max_pool_with_indices, dims=1), MaxPool2d, *INDICES),
    **rows("max_pool2d_with_indices", max_pool_with_indices, MaxPool2d, *INDICES),
    **rows("max_pool3d_with_indices", partial(max_pool_with_indices, dims=3), MaxPool2d, *INDICES),
    **rows("max_unpool2d max_unpool3d", max_unpool, Scatter),
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
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
        adaptive_max_pool,
        MaxPool2d,
        AdaptiveMaxPool2d,
        *INDICES,
    ),
}

"""Rows of the ATen table: images enlarged or reduced, and channels turned into pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Ints, Lowering, Scalar, spatial
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.upsample import (
    MODES,
    PADDINGS,
    GridSample2d,
    UpsampleBicubic2d,
    UpsampleBilinear2d,
    UpsampleNearest2d,
)


def nearest(g: Lowering, x: str, size: Ints | None, *scales: Any) -> str:
    """Lower upsample_nearest1d or 2d. For images, PyTorch ignores the scale of a dimension whose size
    stays or doubles."""
    have = g.shape(x)[2:]
    sizes, steps = _steps(g, x, size, scales)
    if len(sizes) == 2:
        steps = [n / m if m in (n, 2 * n) else step for n, m, step in zip(have, sizes, steps, strict=True)]
    return _nearest(g, x, sizes, steps, exact=False)


def nearest_exact(g: Lowering, x: str, size: Ints | None, *scales: Any) -> str:
    sizes, steps = _steps(g, x, size, scales)
    return _nearest(g, x, sizes, steps, exact=True)


def _nearest(g: Lowering, x: str, sizes: list[int], steps: list[float], exact: bool) -> str:
    dims = len(sizes)
    op = UpsampleNearest2d(spatial(sizes, dims, 1), (steps[0] if dims == 2 else 1.0, steps[-1]), exact)
    return g.nhwc(op, x, dims=dims)


def linear(g: Lowering, x: str, size: Ints | None, align_corners: bool, *scales: Any) -> str:
    """Lower upsample_linear1d or bilinear2d."""
    sizes, steps = _aligned_steps(g, x, size, align_corners, scales)
    dims = len(sizes)
    op = UpsampleBilinear2d(spatial(sizes, dims, 1), (steps[0] if dims == 2 else 1.0, steps[-1]), align_corners)
    return g.nhwc(op, x, dims=dims)


def bicubic(g: Lowering, x: str, size: Ints | None, align_corners: bool, *scales: Any) -> str:
    (height, width), (down, across) = _aligned_steps(g, x, size, align_corners, scales)
    return g.nhwc(UpsampleBicubic2d((height, width), (down, across), align_corners), x)


def grid_sample(g: Lowering, x: str, grid: str, mode: int, padding: int, align_corners: bool) -> str:
    return g.nhwc(GridSample2d(MODES[mode], PADDINGS[padding], align_corners), x, grid)


def _aligned_steps(
    g: Lowering, x: str, size: Ints | None, align_corners: bool, scales: tuple[Any, ...]
) -> tuple[list[int], list[float]]:
    """Return sizes and steps as `_steps` does; with aligned corners, the first output is the first input and the last
    the last."""
    sizes, steps = _steps(g, x, size, scales)
    if align_corners:
        ends = zip(g.shape(x)[2:], sizes, strict=True)
        steps = [_ratio(n - 1, m - 1) if m > 1 else 0.0 for n, m in ends]
    return sizes, steps


def _steps(g: Lowering, x: str, size: Ints | None, scales: tuple[Any, ...]) -> tuple[list[int], list[float]]:
    """Return the output's sizes, and the step of the input per output: from the scale if there is one, else from the
    sizes.

    The overload `vec` has one tuple of scales or None, the plain one a number or None for each side."""
    have = g.shape(x)[2:]
    given: tuple[Scalar | None, ...] = scales[0] if isinstance(scales[0], tuple) else scales
    if len(given) != len(have):
        given = (None,) * len(have)
    sizes = [int(n * float(s or 0)) for n, s in zip(have, given, strict=True)] if size is None else list(size)
    steps = [
        float(np.float32(1 / s)) if s is not None and s > 0 else _ratio(n, m)
        for n, m, s in zip(have, sizes, given, strict=True)
    ]
    return sizes, steps


def _ratio(a: int, b: int) -> float:
    return float(np.float32(a) / np.float32(b))


def pixel_shuffle(g: Lowering, x: str, factor: int) -> str:
    """Lower [..., C * r * r, H, W] -> [..., C, H * r, W * r]."""
    *batch, channels, h, w = g.shape(x)
    c, k = channels // factor**2, len(batch)
    parts = g.reshape(x, (*batch, c, factor, factor, h, w))
    moved = g.permute(parts, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return g.reshape(moved, (*batch, c, h * factor, w * factor))


def pixel_unshuffle(g: Lowering, x: str, factor: int) -> str:
    """Lower [..., C, H * r, W * r] -> [..., C * r * r, H, W]."""
    *batch, c, height, width = g.shape(x)
    h, w, k = height // factor, width // factor, len(batch)
    parts = g.reshape(x, (*batch, c, h, factor, w, factor))
    moved = g.permute(parts, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return g.reshape(moved, (*batch, c * factor**2, h, w))


def channel_shuffle(g: Lowering, x: str, groups: int) -> str:
    """Read the channels as a table of `groups` rows, by columns."""
    n, channels, *rest = g.shape(x)
    parts = g.reshape(x, (n, groups, channels // groups, *rest))
    moved = g.permute(parts, (0, 2, 1, *range(3, len(rest) + 3)))
    return g.reshape(moved, (n, channels, *rest))


ROWS: dict[str, AtenRow] = {
    **rows("upsample_nearest1d upsample_nearest2d", nearest, UpsampleNearest2d),
    **rows("_upsample_nearest_exact1d _upsample_nearest_exact2d", nearest_exact, UpsampleNearest2d),
    **rows("upsample_linear1d upsample_bilinear2d", linear, UpsampleBilinear2d),
    **rows("upsample_bicubic2d", bicubic, UpsampleBicubic2d),
    **rows("grid_sampler_2d", grid_sample, GridSample2d),
    **rows("pixel_shuffle", pixel_shuffle, Permute, Reshape),
    **rows("pixel_unshuffle", pixel_unshuffle, Permute, Reshape),
    **rows("channel_shuffle native_channel_shuffle", channel_shuffle, Permute, Reshape),
}

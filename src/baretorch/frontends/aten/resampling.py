"""Rows of the ATen table: images enlarged or reduced, and channels turned into pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.products import linear_layer
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Build, Ints, Lowering, Scalar, spatial
from baretorch.ir.graph import Array
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
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


def antialiased(kind: str) -> Build:
    """Return the row of a resampling whose filter grows with the step, so that each input counts: a matrix per axis."""
    reach, share = {"bilinear": (1.0, triangle), "bicubic": (2.0, lambda t: cubic(t, -0.5))}[kind]

    def build(g: Lowering, x: str, size: Ints | None, align_corners: bool, *scales: Any) -> str:
        sizes, steps = _aligned_steps(g, x, size, align_corners, scales)
        if sizes[1] == 1 < sizes[0]:
            raise CompileError(
                f"antialiased resizing to {sizes[0]} x 1 is not supported",
                have=str(g[x]),
                need="a width of 2 or more, because PyTorch's result for a width of 1 repeats its first row",
                try_="antialias=False, or a mean over the width",
            )
        for axis, (want, step) in reversed([*enumerate(zip(sizes, steps, strict=True), 2)]):
            have = g.shape(x)[axis]
            if want != have:  # PyTorch leaves the other axes as they are, whatever their scale
                x = apply_matrix(g, x, axis, _filter_matrix(have, want, step, reach, share))
        return x

    return build


def _filter_matrix(have: int, want: int, step: float, reach: float, share: Callable[[Array], Array]) -> Array:
    """Return matrix[output, input] of a filter around each output's place; places are computed in float32."""
    wide, i = np.float32(max(step, 1.0)), np.arange(have, dtype=np.float32)
    center = (np.arange(want, dtype=np.float32) + np.float32(0.5))[:, None] * np.float32(step)
    first = np.maximum(np.trunc(center - np.float32(reach) * wide + np.float32(0.5)), 0)
    stop = np.minimum(np.trunc(center + np.float32(reach) * wide + np.float32(0.5)), have)
    shares = np.where((i >= first) & (i < stop), share((i - center + np.float32(0.5)) / wide), 0.0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)


def triangle(t: Array) -> Array:
    return np.asarray(np.maximum(1 - np.abs(t), 0))


def cubic(t: Array, a: float) -> Array:
    """Return the weights of Keys' cubic convolution: two polynomials that meet at a distance of 1."""
    t = np.abs(t)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.asarray(np.where(t <= 1, near, np.where(t < 2, far, 0.0)))


def apply_matrix(g: Lowering, x: str, axis: int, matrix: Array) -> str:
    """Apply a matrix along an axis as a linear layer."""
    rank = len(g.shape(x))
    weight = g.b.const("resize", matrix)
    if axis == rank - 1:
        return linear_layer(g, x, weight)
    dims = (*(d for d in range(rank) if d != axis), axis)
    back = tuple(int(d) for d in np.argsort(dims))
    return g.permute(linear_layer(g, g.permute(x, dims), weight), back)


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
    **rows("_upsample_bilinear2d_aa", antialiased("bilinear"), Linear),
    **rows("_upsample_bicubic2d_aa", antialiased("bicubic"), Linear),
    **rows("grid_sampler_2d", grid_sample, GridSample2d),
    **rows("pixel_shuffle", pixel_shuffle, Permute, Reshape),
    **rows("pixel_unshuffle", pixel_unshuffle, Permute, Reshape),
    **rows("channel_shuffle native_channel_shuffle", channel_shuffle, Permute, Reshape),
}

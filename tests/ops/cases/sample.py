"""Cases of images sampled between their pixels, and of reductions by indices."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Array, Shape
from baretorch.ops.index import KINDS, ScatterReduce
from baretorch.ops.upsample import MODES, PADDINGS, GridSample2d, UpsampleBicubic2d
from tests.ops.case import EXACT, Case, Inputs, nchw, normal

NEAR = (1e-5, 2e-6)  # sixteen products, some of them negative, and places in float32


def bicubic(x: Shape, size: tuple[int, int], align: bool) -> Case:
    have = x[1:3]
    ends = [(n - 1) / (m - 1) if m > 1 else 0.0 for n, m in zip(have, size, strict=True)]
    steps = ends if align else [n / m for n, m in zip(have, size, strict=True)]
    op = UpsampleBicubic2d(size, (float(np.float32(steps[0])), float(np.float32(steps[1]))), align)
    return Case(
        f"upsample_bicubic2d {x} to {size}{' aligned' if align else ''}",
        op,
        normal(x),
        lambda x: F.interpolate(nchw(x), size, mode="bicubic", align_corners=align).permute(0, 2, 3, 1),
        tolerance=NEAR,
    )


def places(x: Shape, grid: Shape) -> Inputs:
    """Inside, on the border, and outside, also far."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        image, at = normal(x, (*grid, 2))(rng)
        flat = at.reshape(-1)
        flat[:8] = [-1, -1, 1, 1, 1000.3, -77.7, 0, 0]
        return image, at

    return build


def sample(mode: str, padding: str, align: bool, x: Shape = (2, 4, 5, 3)) -> Case:
    def pytorch(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        made = F.grid_sample(nchw(x), grid, mode, padding, align)
        return made.permute(0, 2, 3, 1)

    name = f"grid_sample2d {mode} {padding} {x}{' aligned' if align else ''}"
    return Case(name, GridSample2d(mode, padding, align), places(x, (x[0], 3, 7)), pytorch, tolerance=NEAR)


def scatter_reduce(kind: str, dtype: str, x: Shape, axis: int, count: int) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        shape = (*x[:axis], count, *x[axis + 1 :])
        numbers = (rng.integers(-4, 5, s).astype(dtype) for s in (x, shape))
        first, source = numbers
        return first, rng.integers(0, x[axis], shape).astype(np.int64), source

    return Case(
        f"scatter_reduce {kind} {dtype} {x} axis {axis}",
        ScatterReduce(axis, kind),
        build,
        lambda x, index, source: x.scatter_reduce(axis, index, source, kind),
        tolerance=EXACT,
    )


CASES = (
    *(
        bicubic(x, size, align)
        for align in (False, True)
        for x, size in (((1, 4, 5, 3), (9, 7)), ((2, 6, 6, 1), (3, 4)), ((1, 1, 3, 2), (2, 1)))
    ),
    *(sample(mode, padding, False) for mode in MODES for padding in PADDINGS),
    *(sample("bilinear", padding, True) for padding in PADDINGS),
    sample("bicubic", "reflection", True),
    sample("nearest", "reflection", True, (1, 1, 1, 2)),
    *(
        scatter_reduce(kind, dtype, x, axis, count)
        for kind in KINDS
        for dtype, x, axis, count in (("int32", (5,), 0, 9), ("float32", (3, 4, 2), 1, 5))
    ),
)

"""Convolutions and pools of volumes, which become those of images.

A volume is [N, D, H, W, C] in a Graph. What a kernel does along height and width it does to each of the N D frames;
what it does along the depth alone it does to an image of D rows, each of which is a frame. Only a convolution that is
neither has to gather the frames of each window (ops/depth_windows.py).
"""

from __future__ import annotations

from typing import TypeAlias

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Ints, Lowering
from baretorch.ir.graph import Op
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.depth_windows import DepthWindows
from baretorch.ops.layout import Pad
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d

Triple: TypeAlias = tuple[int, int, int]
Pool: TypeAlias = MaxPool2d | AvgPool2d | AdaptiveAvgPool2d | AdaptiveMaxPool2d


def conv3d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = (1,),
    padding: Ints | str = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
) -> str:
    out, part, *sizes = g.shape(weight)
    kernel, step, reach = triple(sizes), triple(stride), triple(dilation)
    before, after = _around(kernel, reach, padding)
    image = g.permute(weight, (0, 3, 4, 2, 1))  # [O, KH, KW, KD, C / groups]
    extra = (bias,) if bias else ()
    volume = _volume(g, x)
    if kernel[1:] == step[1:] == (1, 1) and before[1:] == after[1:] == (0, 0):
        op = Conv2d((step[0], 1), (before[0], after[0], 0, 0), (reach[0], 1), groups)
        along = g.reshape(g.permute(image, (0, 3, 1, 2, 4)), (out, kernel[0], 1, part))
        return _as_given(g, x, _by_depth(g, op, volume, along, *extra))
    if before[0] or after[0]:
        volume = g.b.add(Pad(((0, 0), (before[0], after[0]), (0, 0), (0, 0), (0, 0)), 0.0), volume)
    n, depth, *size = g.shape(volume)
    windows = DepthWindows(kernel[0], step[0], reach[0], groups)
    every = (kernel[0], step[0]) == (1, 1)
    frames = g.reshape(volume, (n * depth, *size)) if every else g.b.add(windows, volume)
    conv = Conv2d(step[1:], (before[1], after[1], before[2], after[2]), reach[1:], groups)
    y = g.b.add(conv, frames, g.reshape(image, (out, kernel[1], kernel[2], kernel[0] * part)), *extra)
    return _as_given(g, x, g.reshape(y, (n, windows.windows(depth), *g.shape(y)[1:])))


def pooled(g: Lowering, x: str, frame: Pool, depth: Pool) -> str:
    """Pool each frame, then along the depth; nothing where a window is one element."""
    y = _volume(g, x)
    n, d, *size = g.shape(y)
    if not _is_nothing(frame):
        made = g.b.add(frame, g.reshape(y, (n * d, *size)))
        y = g.reshape(made, (n, d, *g.shape(made)[1:]))
    return _as_given(g, x, y if _is_nothing(depth) else _by_depth(g, depth, y))


def _is_nothing(pool: Pool) -> bool:
    if isinstance(pool, (AdaptiveAvgPool2d, AdaptiveMaxPool2d)):
        return False
    plain = pool.kernel == pool.stride == (1, 1) and pool.padding == (0, 0, 0, 0)
    return plain and (isinstance(pool, MaxPool2d) or pool.divisor in (0, 1))


def _by_depth(g: Lowering, op: Op, volume: str, *constants: str) -> str:
    """Apply an operator of images to one whose rows are the frames of a volume."""
    n, d, h, w, c = g.shape(volume)
    y = g.b.add(op, g.reshape(volume, (n, d, h * w, c)), *constants)
    _, made, _, out = g.shape(y)
    return g.reshape(y, (n, made, h, w, out))


def _volume(g: Lowering, x: str) -> str:
    """x[N, C, D, H, W], or without a batch, as [N, D, H, W, C]."""
    shape = g.shape(x)
    if len(shape) not in (4, 5):
        raise CompileError(
            f"the volume has {len(shape)} dimensions", have=str(g[x]), need="x[N, C, D, H, W] or x[C, D, H, W]"
        )
    return g.permute(g.reshape(x, (1,) * (5 - len(shape)) + shape), (0, 2, 3, 4, 1))


def _as_given(g: Lowering, x: str, y: str) -> str:
    """The other way round, with a batch if x has one."""
    back = g.permute(y, (0, 4, 1, 2, 3))
    return g.reshape(back, g.shape(back)[5 - len(g.shape(x)) :])


def _around(kernel: Triple, dilation: Triple, padding: Ints | str) -> tuple[Triple, Triple]:
    """Padding before and after each dimension; PyTorch puts the odd one of "same" at the end."""
    if not isinstance(padding, str):
        return triple(padding), triple(padding)
    missing = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
    return triple([m // 2 for m in missing]), triple([m - m // 2 for m in missing])


def triple(value: Ints | int) -> Triple:
    values = (value,) if isinstance(value, int) else tuple(value)
    a, b, c = values * 3 if len(values) == 1 else values
    return (a, b, c)

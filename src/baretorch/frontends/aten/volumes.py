"""Converts convolutions and pools of volumes to those of images.

A volume is [N, D, H, W, C] in a Graph. What a kernel does along height and width it does to each of the N D frames;
what it does along the depth alone it does to an image of D rows, each of which is a frame. Only a convolution that is
neither has to gather the frames of each window (ops/layout.py).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.windows import Windows
from baretorch.ir.graph import Op
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.layout import DepthWindows, Pad
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d

Pool: TypeAlias = MaxPool2d | AvgPool2d | AdaptiveAvgPool2d | AdaptiveMaxPool2d


def conv3d(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    out, part, *_ = g.shape(weight)
    kernel, step, reach, before, after = w.kernel, w.strides, w.dilations, w.before, w.after
    image = g.permute(weight, (0, 3, 4, 2, 1))  # [O, KH, KW, KD, C / groups]
    extra = (bias,) if bias else ()
    volume = _volume(g, x)
    if kernel[1:] == step[1:] == (1, 1) and before[1:] == after[1:] == (0, 0):
        op = Conv2d(w.depth.step, w.depth.around, w.depth.reach, groups)
        along = g.reshape(g.permute(image, (0, 3, 1, 2, 4)), (out, kernel[0], 1, part))
        return _as_given(g, x, _by_depth(g, op, volume, along, *extra))
    if before[0] or after[0]:
        volume = g.b.add(Pad(((0, 0), (before[0], after[0]), (0, 0), (0, 0), (0, 0)), 0.0), volume)
    n, depth, *size = g.shape(volume)
    windows = DepthWindows(kernel[0], step[0], reach[0], groups)
    every = (kernel[0], step[0]) == (1, 1)
    frames = g.reshape(volume, (n * depth, *size)) if every else g.b.add(windows, volume)
    conv = Conv2d(w.frame.step, w.frame.around, w.frame.reach, groups)
    y = g.b.add(conv, frames, g.reshape(image, (out, kernel[1], kernel[2], kernel[0] * part)), *extra)
    return _as_given(g, x, g.reshape(y, (n, windows.windows(depth), *g.shape(y)[1:])))


def conv_transpose3d(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    """Lower a transposed convolution by a weight [C, O/groups, KD, KH, KW]: of each frame, with an output per element
    of the kernel along the depth, and then of these along the depth, by an identity matrix."""
    volume = _volume(g, x)
    n, depth, *size = g.shape(volume)
    channels, part, along, *kernel = g.shape(weight)
    out, extra = groups * part, [bias] if bias else []
    split = g.reshape(weight, (groups, channels // groups, part, along, *kernel))
    last = g.reshape(g.permute(split, (0, 2, 3, 4, 5, 1)), (out * along, *kernel, channels // groups))
    frames = ConvTranspose2d(w.frame.step, w.frame.around, w.frame.reach, groups)
    alone = (along, w.strides[0], w.before[0], w.after[0]) == (1, 1, 0, 0)
    made = g.b.add(frames, g.reshape(volume, (n * depth, *size)), last, *(extra if alone else ()))
    y = g.reshape(made, (n, depth, *g.shape(made)[1:]))
    if not alone:
        unit = g.b.const("unit", np.tile(np.eye(along, dtype=np.float32)[:, None], (out, 1, 1, 1)))
        y = _by_depth(g, ConvTranspose2d(w.depth.step, w.depth.around, w.depth.reach, out), y, unit, *extra)
    return _as_given(g, x, y)


def pool_volume(g: Lowering, x: str, frame: Pool, depth: Pool) -> str:
    """Pool each frame, then along the depth, unless a window is one element."""
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
    """Apply an operator of images to an image whose rows are the frames of a volume."""
    n, d, h, w, c = g.shape(volume)
    y = g.b.add(op, g.reshape(volume, (n, d, h * w, c)), *constants)
    _, made, _, out = g.shape(y)
    return g.reshape(y, (n, made, h, w, out))


def _volume(g: Lowering, x: str) -> str:
    """Return x[N, C, D, H, W], or without a batch, as [N, D, H, W, C]."""
    shape = g.shape(x)
    if len(shape) not in (4, 5):
        raise CompileError(
            f"the volume has {len(shape)} dimensions", have=str(g[x]), need="x[N, C, D, H, W] or x[C, D, H, W]"
        )
    return g.permute(g.reshape(x, (1,) * (5 - len(shape)) + shape), (0, 2, 3, 4, 1))


def _as_given(g: Lowering, x: str, y: str) -> str:
    """Convert y back from `_volume`'s form, with a batch if x has one."""
    back = g.permute(y, (0, 4, 1, 2, 3))
    return g.reshape(back, g.shape(back)[5 - len(g.shape(x)) :])

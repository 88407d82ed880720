"""Ethos-U85 makes images larger or smaller: the nearest pixel, or a mix of four."""

from __future__ import annotations

import numpy as np

from baretorch.machines.npu.commands import Set
from baretorch.machines.npu.core import NpuCore, zero_point
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import IFM, Ints, ofm_shape, surface

BILINEAR, REPLICATE, NEAREST = range(3)


def _places(count: int, n: int, step: int, offset: int, size: int) -> tuple[Ints, Ints, Ints]:
    """Return for each output along an axis the two nearest inputs, and its distance from the first in n-ths."""
    at = np.arange(count) * step + offset
    first, past = at // n, at % n
    return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), past


def _axis(core: NpuCore, count: int, scale: Set, step: Set, offset: Set, size: int) -> tuple[Ints, Ints, Ints, int]:
    r = core.registers
    n = r[scale] + 1
    whole, rest = r.bits(step, 0, 4), r.second(step) & 0x7FF
    begin = r[offset] - (0x1000 if r[offset] & 0x800 else 0)
    return *_places(count, n, whole * n + rest, begin, size), n


def resized(core: NpuCore, mode: int) -> Ints:
    """Mixed pixels are so many times too large as there are parts between four of them."""
    r = core.registers
    out = ofm_shape(r)
    height, width = r[Set.KERNEL_HEIGHT_M1] + 1, r[Set.KERNEL_WIDTH_M1] + 1
    where = surface(r, IFM)
    x = core.memory.read(where, (height, width, out[2])) - zero_point(r, IFM, where.element)
    y0, y1, py, ny = _axis(core, out[0], Set.RESIZE_Y_SCALE_N_M1, Set.RESIZE_Y, Set.RESIZE_Y_OFFSET, height)
    x0, x1, px, nx = _axis(core, out[1], Set.RESIZE_X_SCALE_N_M1, Set.RESIZE_X, Set.RESIZE_X_OFFSET, width)
    if mode == NEAREST:
        return x[np.where(2 * py >= ny, y1, y0)[:, None], np.where(2 * px >= nx, x1, x0)[None, :]]
    if mode == REPLICATE:
        return x[y0[:, None], x0[None, :]]
    if mode != BILINEAR:
        raise NpuFault(FaultKind.PARSE, f"no way to resize is {mode}")
    a, b = py[:, None, None], px[None, :, None]
    upper: Ints = x[y0][:, x0] * (nx - b) + x[y0][:, x1] * b
    lower: Ints = x[y1][:, x0] * (nx - b) + x[y1][:, x1] * b
    mixed: Ints = upper * (ny - a) + lower * a
    return mixed

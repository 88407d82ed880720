"""The int8 layers for cores with Helium (Cortex-M55, M85): where they fit and how they want their weights."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from baretorch.ir import Array
from baretorch.ops import overlap
from baretorch.ops.kernel import MVE, Call, Distances, Kernel, Packed, Params, data_of
from baretorch.ops.window import Pair

LANES = 16  # bytes in a vector
TOGETHER = 4  # output channels whose weights lie together


def convolutions(params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    """The rows of qconv2d."""
    return (
        Kernel(
            "bt_qconv2d_depthwise_mve",
            "qconv2d/depthwise_mve.c",
            params,
            MVE,
            _fits_depthwise,
            _pack_depthwise,
            _scratch_depthwise,
            _overlap_depthwise,
        ),
        Kernel(
            "bt_qconv2d_pixels_mve",
            "qconv2d/mve.c",
            params,
            MVE,
            _fits_pixels,
            _pack_fours,
            _scratch_rows,
            overlap.rows(0),
        ),
        Kernel(
            "bt_qconv2d_mve",
            "qconv2d/mve.c",
            params,
            MVE,
            _fits_dense,
            _pack_fours,
            _scratch_windows,
            overlap.windows(_step, lambda op: op.padding, together=0),
        ),
    )


def linears(params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    """The rows of qlinear."""
    return (
        Kernel("bt_qlinear_mve", "qlinear/mve.c", params, MVE, _fits_row, _pack_rows, overlap=overlap.rows(1)),
        Kernel(
            "bt_qlinear_rows_mve",
            "qlinear/mve.c",
            params,
            MVE,
            _fits,
            _pack_fours,
            _scratch_rows,
            overlap.rows(0),
        ),
    )


def _fits(call: Call[Any]) -> bool:
    return all(t.data is not None for t in call.inputs[1:])


def _fits_row(call: Call[Any]) -> bool:
    return _fits(call) and prod(call.x.shape[:-1]) == 1 and call.y.shape[-1] >= TOGETHER


def _fits_dense(call: Call[Any]) -> bool:
    return _fits(call) and call.op.groups == 1


def _fits_pixels(call: Call[Any]) -> bool:
    """A kernel of 1 x 1 that meets every pixel once."""
    op = call.op
    alone = op.stride == op.pool == call.inputs[1].shape[1:3] == (1, 1)
    return _fits_dense(call) and alone and op.padding == (0, 0, 0, 0)


def _fits_depthwise(call: Call[Any]) -> bool:
    """A window is one vector of bytes, and eight planes are within the reach of a scattering store."""
    op, channels = call.op, call.x.shape[3]
    return (
        _fits(call)
        and op.groups == channels == call.y.shape[3] >= TOGETHER
        and op.dilation == op.pool == (1, 1)
        and op.shift == 0
        and prod(call.inputs[1].shape[1:3]) <= LANES
        and 7 * _plane(call) < 1 << 16
    )


def _pack_rows(call: Call[Any]) -> tuple[Packed, ...]:
    return tuple(Packed(role, data_of(call.inputs, i)) for i, role in enumerate(("weight", "bias", "multiplier"), 1))


def _pack_fours(call: Call[Any]) -> tuple[Packed, ...]:
    """Four channels together, 16 taps of each in turn; see kernels/int8_mve.h."""
    weight, *constants = (data_of(call.inputs, i) for i in (1, 2, 3))
    bias, multiplier = (_rounded(c[:, None]).reshape(-1) for c in constants)
    taps = prod(weight.shape[1:])
    fours = _rounded(weight.reshape(-1, taps)).reshape(-1, TOGETHER, taps)
    sixteens = [fours[..., at : at + LANES].reshape(len(fours), -1) for at in range(0, taps, LANES)]
    behind = np.zeros(-taps % LANES, np.int8)
    words = np.concatenate([np.concatenate(sixteens, axis=1).reshape(-1), behind])
    return Packed("weight", words), Packed("bias", bias), Packed("multiplier", multiplier)


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """Channel by channel, in it column by column."""
    weight, *constants = _pack_rows(call)
    return (Packed("weight", np.ascontiguousarray(weight.data[..., 0].transpose(0, 2, 1))), *constants)


def _scratch_rows(call: Call[Any]) -> int:
    return 2 * _window(call)


def _scratch_windows(call: Call[Any]) -> int:
    positions = prod(call.op.pool)
    return int(max(2, positions + positions % 2)) * _window(call)


def _scratch_depthwise(call: Call[Any]) -> int:
    return _plane(call) * call.x.shape[3] + LANES


def _overlap_depthwise(call: Call[Any]) -> Distances:
    """The rows of the input that a row of outputs needs are in scratch before it is written."""
    (n, in_h, in_w, in_), (_, out_h, out_w, _) = call.x.shape, call.y.shape
    rows = np.arange(out_h)
    before = (rows - 1) * call.op.stride[0] + call.inputs[1].shape[1] - call.op.padding[0]
    first = np.clip(np.where(rows == 0, 0, before), 0, in_h)
    reads = (np.arange(n)[:, None] * in_h + first).reshape(-1) * in_w * in_
    return (overlap.distance(reads, np.arange(1, n * out_h + 1) * out_w * in_, together=0),)


def _step(op: Any) -> Pair:
    """From one output to the next."""
    return op.stride[0] * op.pool[0], op.stride[1] * op.pool[1]


def _rounded(rows: Array) -> Array:
    """With rows of zeros up to a multiple of four."""
    return np.pad(rows, ((0, -len(rows) % TOGETHER), (0, 0)))


def _window(call: Call[Any]) -> int:
    return -(-prod(call.inputs[1].shape[1:]) // LANES) * LANES


def _plane(call: Call[Any]) -> int:
    """Bytes that a channel takes of kernel_h rows of the image with its padding."""
    kernel_h, kernel_w = call.inputs[1].shape[1:3]
    return int(((call.y.shape[2] - 1) * call.op.stride[1] + kernel_w) * kernel_h)

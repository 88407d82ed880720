"""int8 layers for cores with Helium (Cortex-M55, M85): where they fit, and the layout of their weights."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Packed, data_of, has_constants
from baretorch.ops.packing.layer import CONVOLUTION, LINEAR, pack_layer
from baretorch.targets.features import MVE

LANES = 16  # bytes in a vector
TOGETHER = 4  # output channels whose weights lie together
FEW = 64
IN_TURN = range(2 * LANES, 9 * LANES, LANES)  # bytes of rows that lie in scratch two by two


def _fits_row(call: Call[Any]) -> bool:
    return has_constants(call) and prod(call.x.shape[:-1]) == 1 and call.y.shape[-1] >= TOGETHER


def _fits_rows(call: Call[Any]) -> bool:
    """Return whether there are enough products: a few are computed faster, and in less code, one by one."""
    return has_constants(call) and call.op.shift == 0 and (prod(call.x.shape[:-1]) > 1 or call.x.shape[-1] >= FEW)


def _fits_windows(call: Call[Any]) -> bool:
    op = call.op
    return has_constants(call) and op.groups == 1 and op.shift == 0 and 1 in (op.stride[1], op.dilation[1])


def _fits_pixels(call: Call[Any]) -> bool:
    """Return whether it is a kernel of 1 x 1 that reads every pixel once."""
    op = call.op
    alone = op.stride == op.pool == call.inputs[1].shape[1:3] == (1, 1)
    return _fits_windows(call) and alone and op.padding == (0, 0, 0, 0)


def _fits_depthwise(call: Call[Any]) -> bool:
    """Return whether a window is one vector of bytes, and eight planes are within the reach of a scattering store."""
    op, channels = call.op, call.x.shape[3]
    return (
        has_constants(call)
        and op.groups == channels == call.y.shape[3] >= TOGETHER
        and op.dilation == op.pool == (1, 1)
        and op.shift == 0
        and prod(call.inputs[1].shape[1:3]) <= LANES
        and 7 * _plane(call) < 1 << 16
    )


def _fits_threes(call: Call[Any]) -> bool:
    op, weight, (_, _, width, out) = call.op, call.inputs[1].shape, call.y.shape
    shape = weight[1:3] == (3, 3) and weight[3] % LANES == 0 and out % 2 == 0 and 3 * out < 1 << 16 and width >= 4
    return bool(shape and _fits_windows(call) and op.dilation == op.pool == (1, 1) and op.stride[1] == 1)


def _pack_linear(call: Call[Any]) -> tuple[Packed, ...]:
    return (_stream(call, data_of(call.inputs, 1)),)


def _pack_windows(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the taps column by column, as windows are in scratch."""
    weight = data_of(call.inputs, 1)
    return (_stream(call, weight.transpose(0, 2, 1, 3).reshape(len(weight), -1)),)


def _stream(call: Call[Any], rows: Array) -> Packed:
    """Return for each four channels biases, weights, 16 taps of each in turn, and multipliers; see
    kernels/int8_mve.h."""
    out, taps = rows.shape
    rounded = -(-out // TOGETHER) * TOGETHER
    bias, multiplier = (np.pad(data_of(call.inputs, i), (0, rounded - out)).reshape(-1, TOGETHER) for i in (2, 3))
    fours = np.pad(rows, ((0, rounded - out), (0, 0))).reshape(-1, TOGETHER, taps)
    sixteens = [fours[..., at : at + LANES].reshape(len(fours), -1) for at in range(0, taps, LANES)]
    weights = np.ascontiguousarray(np.concatenate(sixteens, axis=1)).view(np.int32)
    return Packed("constants", np.concatenate([bias, weights, multiplier], axis=1).reshape(-1))


def _pack_threes(call: Call[Any]) -> tuple[Packed, ...]:
    """Return for each two channels weights as [kernel_h][in / 16][kernel_w][2][16], biases and multipliers."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    out, kernel_h, kernel_w, in_ = weight.shape
    twos = weight.reshape(out // 2, 2, kernel_h, kernel_w, in_ // LANES, LANES).transpose(0, 2, 4, 3, 1, 5)
    words = np.ascontiguousarray(twos).reshape(out // 2, -1).view(np.int32)
    rows = np.concatenate([words, bias.reshape(-1, 2), multiplier.reshape(-1, 2)], axis=1)
    return (Packed("constants", rows.reshape(-1)),)


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """Return for each four channels, the last of which may repeat some, weights column by column, biases and
    multipliers."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    out = len(weight)
    fours = np.array([range(at, at + TOGETHER) for at in (*range(0, out - TOGETHER, TOGETHER), out - TOGETHER)])
    columns = np.ascontiguousarray(weight[..., 0].transpose(0, 2, 1)[fours])
    words = columns.reshape(len(fours), -1).view(np.int32)
    return (Packed("constants", np.concatenate([words, bias[fours], multiplier[fours]], axis=1).reshape(-1)),)


def _scratch_rows(call: Call[Any]) -> int:
    """Return the bytes of a block of rows; see kernels/int8_mve.h."""
    taps, rows = call.x.shape[-1], prod(call.x.shape[:-1])
    if taps in IN_TURN:
        rows += rows % 2
    return min(max(512 // taps & ~1, 2 if taps > 256 else 8), 64, rows) * taps + _behind(taps)


def _scratch_columns(call: Call[Any]) -> int:
    """Return the bytes of a row, or of two rows with an odd number of outputs, which are computed together."""
    two = call.y.shape[2] % 2 == 1 and call.y.shape[1] > 1 and call.op.dilation[1] == 1
    return (1 + two) * _columns(call) + _behind(prod(call.inputs[1].shape[1:]))


def _scratch_pool(call: Call[Any]) -> int:
    row = int(call.y.shape[2] * call.op.pool[1] * call.y.shape[3])
    return row + _columns(call) + _behind(prod(call.inputs[1].shape[1:]))


def _behind(taps: int) -> int:
    """Return the bytes that may be read after the last window: short ones are read as vectors."""
    return LANES if taps < LANES else 0


def _columns(call: Call[Any]) -> int:
    """Return the bytes that a row of outputs reads, or one of each dilation_w-th column."""
    op, (kernel_h, kernel_w) = call.op, call.inputs[1].shape[1:3]
    positions = -(-call.y.shape[2] * op.pool[1] // op.dilation[1])
    return int(((positions - 1) * op.stride[1] + kernel_w) * kernel_h * call.x.shape[3])


def _scratch_threes(call: Call[Any]) -> int:
    """Return the bytes of a table with an end, and of the rows."""
    return 4 * (3 * call.x.shape[3] // LANES + 1) + _columns(call)


def _scratch_depthwise(call: Call[Any]) -> int:
    return _plane(call) * call.x.shape[3] + LANES


def _overlap_columns(call: Call[Any]) -> Distances:
    """Return the distance: the inputs of a row of outputs are in scratch before it is written, unless it is computed in
    several passes."""
    step = call.op.stride[0] * call.op.pool[0]
    first = np.arange(call.y.shape[1]) * step - call.op.padding[0]
    return _overlap_rows(call, first, together=int(call.op.pool[0] > 1 or call.op.dilation[1] > 1))


def _overlap_rows_once(call: Call[Any]) -> Distances:
    """Return the distance: a row of the input is copied to scratch once, before the first row of outputs that needs it
    is written."""
    rows = np.arange(call.y.shape[1])
    before = (rows - 1) * call.op.stride[0] + call.inputs[1].shape[1] - call.op.padding[0]
    return _overlap_rows(call, np.where(rows == 0, 0, before), together=0)


def _overlap_rows(call: Call[Any], first: Array, together: int) -> Distances:
    """Return the distance. first[h] is the first row of the input that is read for row h of the output, or a row
    outside of the image."""
    (n, in_h, in_w, in_), (_, out_h, out_w, out) = call.x.shape, call.y.shape
    rows = np.arange(n)[:, None] * in_h + np.clip(first, 0, in_h)
    behind = np.arange(1, n * out_h + 1) * out_w * out
    return (overlap.distance(rows.reshape(-1) * in_w * in_, behind, together),)


def _plane(call: Call[Any]) -> int:
    """Return the bytes of a channel in kernel_h rows of the image with its padding."""
    kernel_h, kernel_w = call.inputs[1].shape[1:3]
    return int(((call.y.shape[2] - 1) * call.op.stride[1] + kernel_w) * kernel_h)


_CHANNELS = cut.rows_or_channels(TOGETHER)
_WINDOWS = CONVOLUTION.for_cpu(
    "mve",
    MVE,
    fits=lambda call: _fits_windows(call) and call.op.pool == (1, 1),
    pack=_pack_windows,
    scratch=_scratch_columns,
    overlap=_overlap_columns,
    splits=_CHANNELS,
)
_ROW = LINEAR.for_cpu(
    "mve",
    MVE,
    fits=_fits_row,
    pack=pack_layer,
    overlap=overlap.rows(1),
    splits=cut.where_ends_fit(_fits_row, _CHANNELS),
)
CONVOLUTIONS: tuple[Kernel[Any], ...] = (
    CONVOLUTION.for_cpu(
        "depthwise_mve",
        MVE,
        fits=_fits_depthwise,
        pack=_pack_depthwise,
        scratch=_scratch_depthwise,
        overlap=_overlap_rows_once,
        splits=cut.rows,
    ),
    replace(
        _WINDOWS, symbol="bt_qconv2d_pixels_mve", fits=_fits_pixels, scratch=_scratch_rows, overlap=overlap.rows(0)
    ),
    CONVOLUTION.for_cpu(
        "threes_mve",
        MVE,
        fits=_fits_threes,
        pack=_pack_threes,
        scratch=_scratch_threes,
        overlap=_overlap_rows_once,
        splits=_CHANNELS,
    ),
    _WINDOWS,
    replace(_WINDOWS, symbol="bt_qconv2d_pool_mve", fits=_fits_windows, scratch=_scratch_pool),
)
LINEARS: tuple[Kernel[Any], ...] = (
    _ROW,
    replace(
        _ROW,
        symbol="bt_qlinear_rows_mve",
        fits=_fits_rows,
        pack=_pack_linear,
        scratch=_scratch_rows,
        overlap=overlap.rows(0),
        splits=_CHANNELS,
    ),
)

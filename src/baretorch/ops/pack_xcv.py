"""The int8 layers for CV32E40P: where they fit and how they want their weights."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from baretorch.ir import Array
from baretorch.ops import cut, overlap
from baretorch.ops.kernel import Call, Distances, Kernel, Packed, Params, data_of
from baretorch.targets.features import XCV

WORD = 4  # bytes that are multiplied at a time
TOGETHER = 4  # output channels whose weights lie together


def convolutions(params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    """The rows of qconv2d."""
    return (
        Kernel(
            "bt_qconv2d_depthwise_xcv",
            "qconv2d/depthwise_xcv.c",
            params,
            XCV,
            _fits_depthwise,
            _pack_depthwise,
            _scratch_depthwise,
            _overlap_depthwise,
            splits=cut.rows,
        ),
        Kernel(
            "bt_qconv2d_xcv",
            "qconv2d/xcv.c",
            params,
            XCV,
            _fits_windows,
            _pack,
            _scratch_windows,
            _overlap,
            splits=cut.rows,
        ),
    )


def linears(params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    """The rows of qlinear."""
    return (
        Kernel(
            "bt_qlinear_xcv",
            "qlinear/xcv.c",
            params,
            XCV,
            _fits,
            _pack,
            lambda call: _rounded(call.x.shape[-1], WORD),
            overlap.rows(0),
            splits=cut.rows_or_channels(TOGETHER),
        ),
    )


def _fits(call: Call[Any]) -> bool:
    return all(t.data is not None for t in call.inputs[1:])


def _fits_windows(call: Call[Any]) -> bool:
    return _fits(call) and call.op.groups == 1 and call.op.pool == (1, 1)


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    """Words of four outputs in turn; see kernels/xcv.h."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    rows = weight.reshape(len(weight), -1)
    more = _rounded(len(rows), TOGETHER) - len(rows)
    padded = np.pad(rows, ((0, more), (0, -rows.shape[1] % WORD)))
    words = padded.view(np.int32).reshape(-1, TOGETHER, padded.shape[1] // WORD).transpose(0, 2, 1)
    return (
        Packed("weight", np.ascontiguousarray(words).reshape(-1)),
        Packed("bias", _more(bias, more)),
        Packed("multiplier", _more(multiplier, more)),
    )


def _fits_depthwise(call: Call[Any]) -> bool:
    op, channels = call.op, call.x.shape[3]
    each = op.groups == channels == call.y.shape[3] and channels % WORD == 0
    return _fits(call) and each and op.pool == (1, 1) and call.inputs[1].shape[1] <= WORD


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """A column of a channel's weights is a word."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    columns = weight[..., 0].transpose(0, 2, 1)
    words = np.pad(columns, ((0, 0), (0, 0), (0, WORD - columns.shape[2])))
    return (
        Packed("weight", np.ascontiguousarray(words).view(np.int32).reshape(-1)),
        Packed("bias", bias),
        Packed("multiplier", multiplier),
    )


def _scratch_depthwise(call: Call[Any]) -> int:
    op, kernel_w = call.op, call.inputs[1].shape[2]
    columns = (call.y.shape[2] - 1) * op.stride[1] + (kernel_w - 1) * op.dilation[1] + 1
    return int(WORD * call.x.shape[3] * columns)


def _overlap_depthwise(call: Call[Any]) -> Distances:
    """What a row of outputs needs is in scratch before it is written."""
    (n, in_h, in_w, in_), (_, out_h, out_w, out) = call.x.shape, call.y.shape
    first = np.clip(np.arange(out_h) * call.op.stride[0] - call.op.padding[0], 0, in_h)
    rows = np.arange(n)[:, None] * in_h + first
    behind = np.arange(1, n * out_h + 1) * out_w * out
    return (overlap.distance(rows.reshape(-1) * in_w * in_, behind, 0),)


def _more(terms: Array, more: int) -> Array:
    return np.pad(terms, (0, more))


def _scratch_windows(call: Call[Any]) -> int:
    return 2 * _rounded(prod(call.inputs[1].shape[1:]), WORD)


def _overlap(call: Call[Any]) -> Distances:
    """Two windows are read before their outputs are written."""
    return overlap.windows(lambda op: op.stride, lambda op: op.padding, 0)(call)


def _rounded(count: int, to: int) -> int:
    return -(-count // to) * to

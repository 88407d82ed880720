"""Weights and limits of the int8 kernels for cores with the DSP extension (kernels/*/dsp.c, *_dsp.c)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Packed, data_of, has_constants
from baretorch.ops.packing.layer import CONVOLUTION, LINEAR, pack_weight, to_multiple
from baretorch.targets.features import DSP

LINE = 24  # BT_LINE of kernels/qconv2d/depthwise3_dsp.c


def fits_pairs(weight: Array) -> bool:
    """Return whether two rows' weights fit into a halfword as 256 b + a: b must not be -128 where a is negative.
    Quantizers rarely use -128, and then other kernels serve."""
    second, first = weight[1::2], weight[: weight.shape[0] - weight.shape[0] % 2 : 2]
    return not bool(((second == -128) & (first < 0)).any())


def _pad(rows: Array, out: int, in_: int) -> Array:
    """Return a matrix with zeros added below and to the right."""
    full = np.zeros((out, in_), np.int32)
    full[: rows.shape[0], : rows.shape[1]] = rows
    return full


def _pack_linear(call: Call[Any]) -> tuple[Packed, ...]:
    return pack_weight(call, four_rows(data_of(call.inputs, 1)))


def four_rows(weight: Array) -> Array:
    """Return two rows in a halfword, four inputs and four rows together; see kernels/qlinear/qlinear.h."""
    return pack_words(_pad(weight, to_multiple(weight.shape[0], 4), to_multiple(weight.shape[1], 4)))


def pack_words(full: Array) -> Array:
    """Return fours of rows and inputs, in the order of the loop."""
    pairs = (256 * full[1::2] + full[0::2]).astype(np.int16)
    # [row block, row pair, input block, second of a pair, first of a pair] -> words in the order of the loop
    blocks = pairs.reshape(full.shape[0] // 4, 2, full.shape[1] // 4, 2, 2)
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 1, 3)).view(np.int32).reshape(-1)


def _channel_pairs(weight: Array) -> Array:
    """Return words [out / 2, taps / 2] of two channels and two taps each, eight taps together; see qconv2d.h."""
    out, taps = weight.shape[0], prod(weight.shape[1:])
    return pack_pair_words(_pad(weight.reshape(out, taps), to_multiple(out, 2), to_multiple(taps, 8)))


def pack_pair_words(full: Array) -> Array:
    """Return words [rows / 2, taps / 2] of two rows and two taps each, of a matrix with rows in twos and fours of
    taps."""
    pairs = (256 * full[1::2] + full[0::2]).astype(np.int16)
    # [channel pair, taps / 4, second of a pair, first of a pair] -> words in the order of the loop
    fours = pairs.reshape(full.shape[0] // 2, full.shape[1] // 4, 2, 2)
    words: Array = np.ascontiguousarray(fours.transpose(0, 1, 3, 2)).view(np.int32)
    return words.reshape(full.shape[0] // 2, full.shape[1] // 2)


def _fits_dense(call: Call[Any]) -> bool:
    return has_constants(call) and call.op.groups == 1 and fits_pairs(data_of(call.inputs, 1))


def _pack_pairs(call: Call[Any]) -> tuple[Packed, ...]:
    """Return two channels in a halfword, eight taps together; see kernels/qconv2d/qconv2d.h."""
    return pack_weight(call, _channel_pairs(data_of(call.inputs, 1)).reshape(-1))


def _scratch_pairs(call: Call[Any]) -> int:
    pairs: int = max(1, -(-prod(call.op.pool) // 2))
    return 4 * to_multiple(prod(call.inputs[1].shape[1:]), 8) * pairs + _window_bytes(call)


def _window_bytes(call: Call[Any]) -> int:
    """Return the bytes of a window that is not contiguous in the image."""
    shape = call.inputs[1].shape[1:]
    plain = shape[:2] == (1, 1) and shape[2] % 4 == 0 and not any(call.op.padding)
    return 0 if plain else to_multiple(prod(shape), 4)


def fits_three(call: Call[Any]) -> bool:
    """Return whether no second channel's sum with its bias can reach 2^23, for all inputs."""
    op = call.op
    if not _fits_dense(call) or op.pool != (1, 1) or op.shift or call.y.shape[3] % 2:
        return False
    weight = data_of(call.inputs, 1)[1::2].astype(np.int64).reshape(call.y.shape[3] // 2, -1)
    bias = data_of(call.inputs, 2)[1::2]
    most = bias + np.maximum(127 * weight, -128 * weight).sum(axis=1)
    least = bias + np.minimum(127 * weight, -128 * weight).sum(axis=1)
    return int(most.max()) < 1 << 23 and int(least.min()) >= -1 << 23


def order_taps(weight: Array) -> Array:
    """Reorder [out, taps]: of each row of a window first the fours of taps, then the remaining taps of all rows, as in
    the windows of kernels/qconv2d/threes_dsp.h."""
    rows = weight.reshape(*weight.shape[:2], -1)
    fours = rows.shape[2] & ~3
    parts = (rows[..., :fours], rows[..., fours:])
    return np.concatenate([part.reshape(weight.shape[0], -1) for part in parts], axis=1)


def _pack_three(call: Call[Any]) -> tuple[Packed, ...]:
    taps = order_taps(data_of(call.inputs, 1))
    return pack_three(call, pack_pair_words(_pad(taps, taps.shape[0], to_multiple(taps.shape[1], 4))), 2)


def pack_three(call: Call[Any], weight: Array, before: int = 0) -> tuple[Packed, ...]:
    """Return all constants of two channels together: some words of weights, the biases, the other weights, the
    multipliers; see kernels/qconv2d/qconv2d.h."""
    bias, multiplier = (data_of(call.inputs, i) for i in (2, 3))
    both = (256 * bias[1::2].astype(np.int64) + bias[0::2]).astype(np.uint32).view(np.int32)
    biases = np.stack([bias[0::2], both], axis=1)
    words = np.concatenate([weight[:, :before], biases, weight[:, before:], multiplier.reshape(-1, 2)], axis=1)
    return (Packed("weight", words.astype(np.int32).reshape(-1)),)


def scratch_three(call: Call[Any], fours: int = 1) -> int:
    """Return the bytes of three windows in multiples of four taps, of what computes them, and of a window or the
    remaining taps of three windows."""
    kernel_h, kernel_w, channels = call.inputs[1].shape[1:]
    left_over = 3 * to_multiple(kernel_h * (kernel_w * channels % 4), 4)
    return 6 * to_multiple(kernel_h * kernel_w * channels, 4 * fours) + 32 + max(_window_bytes(call), left_over)


def overlap_positions(call: Call[Any], together: int) -> Distances:
    """Return the distance of a kernel that reads the windows of `together` pixels before it writes any of them."""
    op, (n, in_h, in_w, in_), (_, out_h, out_w, out) = call.op, call.x.shape, call.y.shape
    top = np.clip(np.arange(out_h) * op.stride[0] * op.pool[0] - op.padding[0], 0, in_h)
    left = np.clip(np.arange(out_w) * op.stride[1] * op.pool[1] - op.padding[2], 0, in_w)
    pixels = (top[:, None] * in_w + left).reshape(-1)
    starts = np.arange(0, pixels.size, together)
    image = np.arange(n)[:, None]
    reads = image * in_h * in_w + np.minimum.reduceat(pixels, starts)
    writes = image * pixels.size + np.minimum(starts + together, pixels.size)
    return (overlap.distance(reads.reshape(-1) * in_, writes.reshape(-1) * out, together=0),)


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the weights tap by tap, with channels together."""
    weight = data_of(call.inputs, 1)
    return pack_weight(call, np.ascontiguousarray(weight[..., 0].transpose(1, 2, 0)))


def fits_depthwise(call: Call[Any]) -> bool:
    channels = call.x.shape[3]
    return has_constants(call) and call.op.groups == channels == call.y.shape[3] >= 4 and call.op.pool == (1, 1)


def scratch_depthwise(call: Call[Any]) -> int:
    return 8 * prod(call.inputs[1].shape[1:3]) + 4


def _pack_depthwise3(call: Call[Any]) -> tuple[Packed, ...]:
    """Return four words per channel; see kernels/qconv2d/qconv2d.h."""
    weight = data_of(call.inputs, 1)[..., 0]
    bias, multiplier = (data_of(call.inputs, i).astype("<i4") for i in (2, 3))
    (w00, w01, w02), (w10, w11, w12), (w20, w21, w22) = weight.transpose(1, 2, 0)
    first = bias * 256 + w22.view(np.uint8)
    bytes_ = np.stack([w00, w01, w10, w11, w02, w20, w12, w21], axis=-1)
    words = np.concatenate([first[:, None], multiplier[:, None], np.ascontiguousarray(bytes_).view("<i4")], axis=1)
    return (Packed("weight", words.astype(np.int32).reshape(-1)),)


def _fits_depthwise3(call: Call[Any]) -> bool:
    """Return whether it is 3x3 with at most one row or column of padding on each side, and with biases that leave a
    byte of their word free."""
    op = call.op
    return (
        fits_depthwise(call)
        and call.inputs[1].shape[1:3] == (3, 3)
        and op.dilation == (1, 1)
        and set(op.stride) <= {1, 2}
        and max(op.padding) <= 1
        and op.shift == 0
        and int(np.abs(data_of(call.inputs, 2).astype(np.int64)).max()) < 1 << 23
    )


def _scratch_depthwise3(call: Call[Any]) -> int:
    outputs = min(call.y.shape[2], LINE // call.op.stride[1])
    kept = 2 * prod(call.x.shape[2:]) if call.op.stride[0] == 1 else 0
    line: int = outputs * call.op.stride[1] + 2
    return 12 * line + kept


def _scratch_depthwise3_rows(call: Call[Any]) -> int:
    (in_w, channels), out_w = call.x.shape[2:], call.y.shape[2]
    line = out_w if out_w <= 24 else 16  # BT_ROWS_LINE
    return 16 * (line + 2) + (in_w + out_w) * channels


def _overlap_depthwise3(call: Call[Any]) -> Distances:
    """Return the distance: with stride 1 the rows that are needed again are kept, otherwise a row is read while its
    outputs are written."""
    (n, in_h, in_w, in_), (_, out_h, out_w, _) = call.x.shape, call.y.shape
    if call.op.stride[0] == 1:
        return (0,)
    first = np.maximum(np.arange(out_h) * call.op.stride[0] - call.op.padding[0], 0)
    reads = (np.arange(n)[:, None] * in_h + first).reshape(-1) * in_w * in_
    return (overlap.distance(reads, np.arange(1, n * out_h + 1) * out_w * in_, together=1),)


CONVOLUTIONS: tuple[Kernel[Any], ...] = (
    CONVOLUTION.for_cpu(
        "depthwise3_rows_dsp",
        DSP,
        fits=lambda call: _fits_depthwise3(call) and call.op.stride == (1, 1),
        pack=_pack_depthwise3,
        scratch=_scratch_depthwise3_rows,
        overlap=lambda call: (0,),
        splits=cut.rows,
    ),
    CONVOLUTION.for_cpu(
        "depthwise3_dsp",
        DSP,
        fits=_fits_depthwise3,
        pack=_pack_depthwise3,
        scratch=_scratch_depthwise3,
        overlap=_overlap_depthwise3,
        splits=cut.rows,
    ),
    CONVOLUTION.for_cpu(
        "depthwise_dsp",
        DSP,
        fits=fits_depthwise,
        pack=_pack_depthwise,
        scratch=scratch_depthwise,
        splits=cut.rows,
    ),
    CONVOLUTION.for_cpu(
        "dsp",
        DSP,
        fits=fits_three,
        pack=_pack_three,
        scratch=scratch_three,
        overlap=lambda call: overlap_positions(call, 3),
        splits=cut.rows_and_channels(2),
        channels="bt_qconv2d_channels_dsp",
    ),
    CONVOLUTION.for_cpu(
        "pairs_dsp",
        DSP,
        fits=_fits_dense,
        pack=_pack_pairs,
        scratch=_scratch_pairs,
        overlap=lambda call: overlap_positions(call, 2 if call.op.pool == (1, 1) else 1),
        splits=cut.rows_and_channels(2),
        channels="bt_qconv2d_channels_pairs_dsp",
    ),
)
LINEARS: tuple[Kernel[Any], ...] = (
    LINEAR.for_cpu(
        "dsp",
        DSP,
        fits=lambda call: has_constants(call) and fits_pairs(data_of(call.inputs, 1)),
        pack=_pack_linear,
        overlap=overlap.rows(1),
        splits=cut.rows_or_channels(4),
    ),
)

"""Layers with weights of 4 bits: kernels of qlinear and qconv2d, and how they want their weights.

8 is added to each weight, so that a nibble has no sign; what that adds to a sum is 8 times the sum of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from baretorch.ir import Array
from baretorch.ops import cut, overlap, pack_dsp
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of
from baretorch.targets.features import DSP, MVE, TRIPLES

if TYPE_CHECKING:
    from baretorch.ops.qconv2d import QConv2d
    from baretorch.ops.qlinear import QLinear

ADDED = 8
LONGEST = 8188  # inputs of a row whose sum stays below 2^23


def of_8_bits(kernel: Kernel[Any]) -> Kernel[Any]:
    """A kernel for weights of 8 bits alone: it would store others as such."""
    return replace(kernel, fits=lambda call: call.op.bits == 8 and kernel.fits(call))


def linears(params: Callable[[Call[QLinear]], Params]) -> tuple[Kernel[QLinear], ...]:
    """The rows of qlinear."""
    ref = Kernel(
        "bt_qlinear4_ref",
        "qlinear/int4_ref.c",
        params,
        fits=_fits,
        pack=lambda call: _packed(call, _nibbles(data_of(call.inputs, 1))),
        splits=cut.rows_or_channels(2),
    )
    return (
        replace(ref, symbol="bt_qlinear4_mve", source="qlinear/int4_mve.c", needs=MVE),
        Kernel(
            "bt_qlinear4_dsp",
            "qlinear/int4_dsp.c",
            params,
            needs=DSP,
            fits=lambda call: _fits(call) and call.x.shape[-1] % 4 == 0 and call.x.shape[-1] <= LONGEST,
            pack=lambda call: _packed(call, _four_rows(data_of(call.inputs, 1))),
            overlap=overlap.rows(1),
            splits=cut.rows_or_channels(4),
        ),
        replace(
            ref,
            symbol="bt_qlinear4_pairs",
            source="qlinear/int4_pairs.c",
            needs=TRIPLES,
            fits=lambda call: _fits(call) and call.x.shape[-1] % 2 == 0,
            pack=lambda call: _packed(call, _pairs(data_of(call.inputs, 1))),
            splits=cut.rows_or_channels(4),
        ),
        ref,
    )


def convolutions(params: Callable[[Call[QConv2d]], Params]) -> tuple[Kernel[QConv2d], ...]:
    """The rows of qconv2d."""
    ref = Kernel(
        "bt_qconv2d4_ref",
        "qconv2d/int4_ref.c",
        params,
        fits=_fits,
        pack=lambda call: _packed(call, _nibbles(data_of(call.inputs, 1).reshape(call.y.shape[-1], -1))),
        splits=cut.rows,
    )
    windows = replace(
        ref,
        symbol="bt_qconv2d4_windows_ref",
        source="qconv2d/int4_windows_ref.c",
        fits=lambda call: _fits(call) and call.op.groups == 1 and call.op.pool == (1, 1),
        scratch=lambda call: prod(call.inputs[1].shape[1:]),
    )
    return (
        replace(windows, symbol="bt_qconv2d4_windows_mve", source="qconv2d/int4_windows_mve.c", needs=MVE),
        Kernel(
            "bt_qconv2d_depthwise4_dsp",
            "qconv2d/depthwise4_dsp.c",
            params,
            needs=DSP,
            fits=lambda call: _fits(call) and pack_dsp.fits_depthwise(call),
            pack=lambda call: _packed(call, _four_channels(data_of(call.inputs, 1))),
            scratch=pack_dsp.scratch_depthwise,
            splits=cut.rows,
        ),
        Kernel(
            "bt_qconv2d4_dsp",
            "qconv2d/int4_dsp.c",
            params,
            needs=DSP,
            fits=lambda call: _fits(call) and pack_dsp.fits_three(call),
            pack=lambda call: pack_dsp.pack_three(call, _channel_pairs(data_of(call.inputs, 1))),
            scratch=lambda call: pack_dsp.scratch_three(call, 2) + 24,
            overlap=lambda call: pack_dsp.overlap_positions(call, 3),
            splits=cut.rows,
        ),
        replace(
            windows,
            symbol="bt_qconv2d4_pairs",
            source="qconv2d/int4_pairs.c",
            needs=TRIPLES,
            fits=lambda call: windows.fits(call) and prod(call.inputs[1].shape[1:]) % 2 == 0,
            pack=lambda call: _packed(call, _pairs(data_of(call.inputs, 1).reshape(call.y.shape[-1], -1))),
        ),
        windows,
        ref,
    )


def _fits(call: Call[QLinear] | Call[QConv2d]) -> bool:
    return call.op.bits == 4 and all(t.data is not None for t in call.inputs[1:])


def _packed(call: Call[QLinear] | Call[QConv2d], weight: Array) -> tuple[Packed, ...]:
    return (
        Packed("weight", weight),
        *(Packed(r, data_of(call.inputs, i)) for i, r in ((2, "bias"), (3, "multiplier"))),
    )


def _added(rows: Array, out: int, in_: int) -> Array:
    """A matrix with 8 added, and zeros below and to the right before that."""
    full = np.full((-(-rows.shape[0] // out) * out, -(-rows.shape[1] // in_) * in_), ADDED, np.uint32)
    full[: rows.shape[0], : rows.shape[1]] += rows.astype(np.int32).view(np.uint32)
    return full


def _nibbles(rows: Array) -> Array:
    """Two rows in a byte."""
    full = _added(rows, 2, 1)
    return np.asarray(full[0::2] + 16 * full[1::2], np.uint8)


def _pairs(rows: Array) -> Array:
    """Words of four rows and two inputs; see kernels/int4_pairs.h."""
    full = _added(rows, 4, 2)
    fours = full.reshape(full.shape[0] // 4, 2, 2, -1, 2).transpose(0, 3, 4, 1, 2)  # four, word, input, pair, row
    shifts = np.array([[0, 16], [4, 20], [8, 24], [12, 28]], np.uint32).reshape(2, 2, 2)
    return np.asarray((fours << shifts).sum(axis=(2, 3, 4), dtype=np.uint32), np.uint32).view(np.int32).reshape(-1)


def _four_rows(rows: Array) -> Array:
    """Words of four rows and two inputs; see kernels/qlinear/qlinear.h."""
    words = pack_dsp.in_words(_added(rows, 4, 4)).reshape(-1, 2)
    return np.asarray(words[:, 0] + 16 * words[:, 1], np.int32)


def _channel_pairs(weight: Array) -> Array:
    """Words [out / 2, taps / 4] of two channels and four taps; see kernels/qconv2d/qconv2d.h."""
    words = pack_dsp.pair_words(_added(pack_dsp.in_order(weight), 2, 8))
    return (words[:, 0::2].view(np.uint32) + 16 * words[:, 1::2].view(np.uint32)).view(np.int32)


def _four_channels(weight: Array) -> Array:
    """Halfwords of four channels, for each tap; the last four may repeat some."""
    channels = weight.shape[0]
    nibbles = (weight.reshape(channels, -1).astype(np.int32) + ADDED).astype(np.uint16)
    starts = [min(c, channels - 4) for c in range(0, channels, 4)]
    blocks = np.stack([nibbles[c : c + 4] for c in starts]) << np.array([0, 4, 8, 12], np.uint16)[:, None]
    return np.asarray(blocks.sum(axis=1), np.uint16).view(np.int16)

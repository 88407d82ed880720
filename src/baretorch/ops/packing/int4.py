"""Layers with weights of 4 bits: kernels of qlinear and qconv2d, and the layout of their weights.

8 is added to each weight, so that a nibble has no sign; this adds 8 times the sum of the inputs to a sum. Only the top
nibble of a word of four rows keeps its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, data_of, has_constants
from baretorch.ops.int8.groups_of_inputs import GROUP, split_groups
from baretorch.ops.packing import dsp, mve, triples
from baretorch.ops.packing.layer import CONVOLUTION, conv_params, pack_weight, row_params, weight_rows
from baretorch.targets.features import ANY_CPU, DSP, MVE, TRIPLES, Needs

ADDED = 8
MANY = 8  # rows of inputs for which weights are made bytes first
SIGNS = np.uint32(0x80008000).view(
    np.int32
)  # flips the top bits of the highest nibbles, which undoes the addition of 8
LONGEST = 8188  # inputs of a row whose sum stays below 2^23


def for_8_bits(kernel: Kernel[Any]) -> Kernel[Any]:
    """Return the kernel restricted to weights of 8 bits, because it would store others as 8 bits too."""
    return replace(kernel, fits=lambda call: call.op.bits == 8 and kernel.fits(call))


def _depthwise(kernel: Kernel[Any], variant: str, words: int) -> Kernel[Any]:
    """Return the 4-bit form of a kernel for depthwise convolutions of 8 bits: it unpacks weights to bytes in scratch,
    with `words` words after each four channels."""
    pack = kernel.pack
    assert pack is not None

    def pack_halves(call: Call[Any]) -> tuple[Packed, ...]:
        first, *others = pack(call)
        if not words:
            return (Packed("weight", _two_in_a_byte(first.data)), *others)
        fours = first.data.reshape(-1, prod(call.inputs[1].shape[1:3]) + words)
        weight = np.ascontiguousarray(fours[:, :-words]).view(np.int8)
        return (Packed("weight", _two_in_a_byte(weight)), Packed("terms", np.ascontiguousarray(fours[:, -words:])))

    def scratch(call: Call[Any]) -> int:
        channels, taps = call.x.shape[3], prod(call.inputs[1].shape[1:3])
        return kernel.scratch(call) + (
            4 * -(-channels // 4) * (taps + words) if words else -(-channels * taps // 4) * 4
        )

    return replace(
        kernel,
        symbol=f"bt_qconv2d_depthwise4_{variant}",
        source=f"qconv2d/depthwise4_{variant}.c",
        fits=lambda call: _fits(call) and kernel.fits(call),
        pack=pack_halves,
        scratch=scratch,
    )


def _two_in_a_byte(weight: Array) -> Array:
    """Return two weights in a byte, the first in the low bits."""
    flat = np.append(weight.reshape(-1).astype(np.int32), np.zeros(weight.size % 2, np.int32)) + ADDED
    return np.asarray(flat[0::2] + 16 * flat[1::2], np.uint8)


def groups() -> tuple[Kernel[Any], ...]:
    """Return the kernels for weights in groups, of qlinear and of pointwise convolutions, which have a row for each
    pixel."""

    def row(variant: str, rows: int, weight: Callable[[Array], Array], inputs: int, needs: Needs) -> Kernel[Any]:
        def pack(call: Call[Any]) -> tuple[Packed, ...]:
            made = split_groups(weight_rows(call))
            assert made is not None, f"{call.op} has other weights"
            small, factors = made
            full = np.zeros((-(-len(factors) // rows) * rows, factors.shape[1]), np.uint8)
            full[: len(factors)] = factors
            together = full.reshape(-1, rows, full.shape[1]).transpose(0, 2, 1)
            first, *others = pack_weight(call, weight(small))
            return (first, Packed("factors", np.ascontiguousarray(together)), *others)

        return Kernel(
            f"bt_qlinear4_groups_{variant}",
            f"qlinear/int4_groups_{variant}.c",
            row_params,
            needs,
            lambda call: _fits_groups(call) and weight_rows(call).shape[1] % inputs == 0,
            pack,
            (lambda call: 4 * -(-weight_rows(call).shape[1] // GROUP))
            if variant in ("dsp", "pairs")
            else (lambda call: 0),
            splits=cut.rows_or_channels(rows),
        )

    helium = replace(
        row("mve", 4, _pack_signed, 1, MVE),
        fits=lambda call: _fits_groups(call) and weight_rows(call).shape[1] <= LONGEST,
    )
    pairs = row("dsp", 4, _four_rows, 4, DSP)
    return (
        replace(
            helium,
            symbol="bt_qlinear4_groups_rows_mve",
            fits=lambda call: _fits_groups(call) and _many_rows(call) and call.op.shift == 0 and call.x.shape[-1] > 16,
            scratch=lambda call: 4 * (weight_rows(call).shape[1] + 8),
        ),
        helium,
        replace(
            pairs,
            symbol="bt_qlinear4_groups_rows_dsp",
            fits=lambda call: pairs.fits(call) and _many_rows(call) and dsp.fits_pairs(weight_rows(call)),
            scratch=lambda call: 4 * weight_rows(call).shape[1],
        ),
        pairs,
        row("pairs", 4, _pairs, 2, TRIPLES),
        row("ref", 2, _pack_nibbles, 1, ANY_CPU),
    )


def _fits_groups(call: Call[Any]) -> bool:
    return call.op.group == GROUP and has_constants(call)


def _many_rows(call: Call[Any]) -> bool:
    """Return whether there are enough rows of inputs that unpacking weights to 8 bits first pays."""
    return prod(call.x.shape[:-1]) >= MANY


def _fits(call: Call[Any]) -> bool:
    return call.op.bits == 4 and not call.op.group and has_constants(call)


def _add_and_pad(rows: Array, out: int, in_: int) -> Array:
    """Return a matrix with 8 added, and zeros below and to the right before that."""
    full = np.full((-(-rows.shape[0] // out) * out, -(-rows.shape[1] // in_) * in_), ADDED, np.uint32)
    full[: rows.shape[0], : rows.shape[1]] += rows.astype(np.int32).view(np.uint32)
    return full


def _pack_nibbles(rows: Array) -> Array:
    """Return two rows in a byte."""
    full = _add_and_pad(rows, 2, 1)
    return np.asarray(full[0::2] + 16 * full[1::2], np.uint8)


def _pack_signed(rows: Array) -> Array:
    """Return two rows in a byte, with their signs, and four together."""
    full = np.pad(rows, ((0, -rows.shape[0] % 4), (0, 0))).astype(np.int32)
    return np.asarray((full[0::2] & 15) + 16 * (full[1::2] & 15), np.uint8)


def _pairs(rows: Array) -> Array:
    """Return words of four rows and two inputs; see kernels/int4_pairs.h."""
    full = _add_and_pad(rows, 4, 2)
    fours = full.reshape(full.shape[0] // 4, 2, 2, -1, 2).transpose(0, 3, 4, 1, 2)  # four, word, input, pair, row
    shifts = np.array([[0, 16], [4, 20], [8, 24], [12, 28]], np.uint32).reshape(2, 2, 2)
    return np.asarray((fours << shifts).sum(axis=(2, 3, 4), dtype=np.uint32), np.uint32).view(np.int32).reshape(-1)


def _four_rows(rows: Array) -> Array:
    """Return words of four rows and two inputs; see kernels/qlinear/qlinear.h."""
    words = dsp.pack_words(_add_and_pad(rows, 4, 4)).reshape(-1, 2)
    return np.asarray((words[:, 0] + 16 * words[:, 1]) ^ SIGNS, np.int32)


def _channel_pairs(weight: Array) -> Array:
    """Return words [out / 2, taps / 4] of two channels and four taps; see kernels/qconv2d/qconv2d.h."""
    words = dsp.pack_pair_words(_add_and_pad(dsp.order_taps(weight), 2, 8))
    return (words[:, 0::2].view(np.uint32) + 16 * words[:, 1::2].view(np.uint32)).view(np.int32)


def _four_channels(weight: Array) -> Array:
    """Return halfwords of four channels for each tap; the last four may repeat some."""
    channels = weight.shape[0]
    nibbles = (weight.reshape(channels, -1).astype(np.int32) + ADDED).astype(np.uint16)
    starts = [min(c, channels - 4) for c in range(0, channels, 4)]
    blocks = np.stack([nibbles[c : c + 4] for c in starts]) << np.array([0, 4, 8, 12], np.uint16)[:, None]
    return np.asarray(blocks.sum(axis=1), np.uint16).view(np.int16)


_ROWS = Kernel[Any](
    "bt_qlinear4_ref",
    "qlinear/int4_ref.c",
    row_params,
    fits=_fits,
    pack=lambda call: pack_weight(call, _pack_nibbles(data_of(call.inputs, 1))),
    splits=cut.rows_or_channels(2),
)
LINEARS: tuple[Kernel[Any], ...] = (
    _ROWS.for_cpu("mve", MVE),
    _ROWS.for_cpu(
        "dsp",
        DSP,
        fits=lambda call: _fits(call) and call.x.shape[-1] % 4 == 0 and call.x.shape[-1] <= LONGEST,
        pack=lambda call: pack_weight(call, _four_rows(data_of(call.inputs, 1))),
        overlap=overlap.rows(1),
        splits=cut.rows_or_channels(4),
    ),
    _ROWS.for_cpu(
        "pairs",
        TRIPLES,
        fits=lambda call: _fits(call) and call.x.shape[-1] % 2 == 0,
        pack=lambda call: pack_weight(call, _pairs(data_of(call.inputs, 1))),
        splits=cut.rows_or_channels(4),
    ),
    _ROWS,
    *groups(),
)

_CONV = Kernel[Any](
    "bt_qconv2d4_ref",
    "qconv2d/int4_ref.c",
    conv_params,
    fits=_fits,
    pack=lambda call: pack_weight(call, _pack_nibbles(data_of(call.inputs, 1).reshape(call.y.shape[-1], -1))),
    splits=cut.rows,
)
_WINDOWS = _CONV.for_cpu(
    "windows_ref",
    ANY_CPU,
    fits=lambda call: _fits(call) and call.op.groups == 1 and call.op.pool == (1, 1),
    scratch=lambda call: prod(call.inputs[1].shape[1:]),
)
_OF_8_BITS = {k.symbol: k for k in (*mve.CONVOLUTIONS, *triples.CONVOLUTIONS)}
CONVOLUTIONS: tuple[Kernel[Any], ...] = (
    _depthwise(_OF_8_BITS["bt_qconv2d_depthwise_mve"], "mve", 8),
    _WINDOWS.for_cpu("mve", MVE),
    CONVOLUTION.for_cpu(
        "depthwise4_dsp",
        DSP,
        fits=lambda call: _fits(call) and dsp.fits_depthwise(call),
        pack=lambda call: pack_weight(call, _four_channels(data_of(call.inputs, 1))),
        scratch=dsp.scratch_depthwise,
        splits=cut.rows,
    ),
    _CONV.for_cpu(
        "dsp",
        DSP,
        fits=lambda call: _fits(call) and dsp.fits_three(call),
        pack=lambda call: dsp.pack_three(call, _channel_pairs(data_of(call.inputs, 1))),
        scratch=lambda call: dsp.scratch_three(call, 2) + 24,
        overlap=lambda call: dsp.overlap_positions(call, 3),
    ),
    _depthwise(_OF_8_BITS["bt_qconv2d_depthwise_triples"], "triples", 0),
    _CONV.for_cpu(
        "pairs",
        TRIPLES,
        scratch=_WINDOWS.scratch,
        fits=lambda call: _WINDOWS.fits(call) and prod(call.inputs[1].shape[1:]) % 2 == 0,
        pack=lambda call: pack_weight(call, _pairs(data_of(call.inputs, 1).reshape(call.y.shape[-1], -1))),
    ),
    _WINDOWS,
    _CONV,
    *groups(),
)

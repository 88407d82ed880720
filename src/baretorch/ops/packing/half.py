"""Layers with weights of float16: kernels of linear and conv2d, and the layout of their weights. Kernels convert them
to float, which is exact, so only the bytes differ: sums are those of float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, apart, data_of


def round_to_half(weight: Array) -> Array:
    """Return the nearest float16, ties to even."""
    with np.errstate(over="ignore"):
        return weight.astype(np.float16)


def for_float32(kernel: Kernel[Any]) -> Kernel[Any]:
    """Return a kernel for weights of float32 alone."""
    return replace(kernel, fits=lambda call: not call.op.half and kernel.fits(call))


def make_half(kernel: Kernel[Any]) -> Kernel[Any]:
    """Return the float16 form of a portable kernel for float32."""
    return _like(kernel, lambda call: round_to_half(data_of(call.inputs, 1)).view(np.int16), 1)


def make_half_in_eights(kernel: Kernel[Any]) -> Kernel[Any]:
    """Return the float16 form of a kernel that computes eight outputs together."""
    return _like(kernel, _eights, 8)


def _like(kernel: Kernel[Any], halves: Callable[[Call[Any]], Array], step: int) -> Kernel[Any]:
    pack = kernel.pack
    assert pack is not None, f"{kernel.symbol} takes weights as they are"
    return replace(
        kernel,
        symbol=kernel.symbol.replace("_f32_", "_half_f32_"),
        source=kernel.source.replace("/", "/half_"),
        fits=lambda call: call.op.half and kernel.fits(call),
        pack=lambda call: (Packed("weight", halves(call)), *pack(call)[1:]),
        splits=cut.rows if "depthwise" in kernel.symbol else cut.rows_or_channels(step),
        channels="",
        back="",
        behind=apart,
    )


def _eights(call: Call[Any]) -> Array:
    """Return the weights as words; see kernels/half_eights.h. The last may be padded."""
    weight = data_of(call.inputs, 1)
    rows = round_to_half(weight.reshape(weight.shape[0], -1)).view(np.uint16)
    out, in_ = rows.shape
    full = out - out % 8
    pairs = rows[:full].reshape(full // 8, 2, 4, in_).transpose(0, 3, 2, 1)  # eight, input, word, low or high
    rest = rows[full:].reshape(-1)
    return np.concatenate([pairs.reshape(-1), rest, rest[: rest.size % 2]]).view(np.int32)

"""int8 layers for CV32E40P: where they fit, and the layout of their weights. Each has a variant for narrow layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Packed, Params, data_of, has_constants
from baretorch.ops.int8.narrow_requant import NarrowRequant, narrow_form
from baretorch.ops.packing.layer import CONVOLUTION, LINEAR, conv_params, to_multiple
from baretorch.targets.features import XCV

WORD = 4  # bytes that are multiplied at a time
TOGETHER = 4  # output channels whose weights lie together
WINDOWS = 4  # that are made together


def _narrow(kernel: Kernel[Any]) -> Kernel[Any]:
    """Return the kernel for layers for which 32 bits are enough."""

    def rename(symbol: str) -> str:
        return symbol.replace("_xcv", "_narrow_xcv")

    def params(call: Call[Any]) -> Params:
        plain, shift = kernel.params(call), _narrow_of(call).shift
        fields = tuple((n, shift if n in ("shift", "layer.shift") else value) for n, value in plain.fields)
        return replace(plain, fields=fields)

    return replace(
        kernel,
        symbol=rename(kernel.symbol),
        params=params,
        fits=lambda call: kernel.fits(call) and narrow_form(call) is not None,
        pack=lambda call: _pack_of(kernel)(call, _narrow_of(call).multiplier),
        channels=rename(kernel.channels),
    )


def _narrow_of(call: Call[Any]) -> NarrowRequant:
    form = narrow_form(call)
    assert form is not None, f"{call.y} is not narrow"
    return form


def _pack_of(kernel: Kernel[Any]) -> Callable[[Call[Any], Array], tuple[Packed, ...]]:
    return _depthwise_with if kernel.pack is _pack_depthwise else _with


def _wide(call: Call[Any]) -> Array:
    """Return twice the multipliers: the high word of a product then leaves one bit to round by."""
    return data_of(call.inputs, 3).astype(np.uint32).view(np.int32) * np.int32(2)


def _fits_windows(call: Call[Any]) -> bool:
    return has_constants(call) and call.op.groups == 1


def _fits_pixels(call: Call[Any]) -> bool:
    """Return whether windows are one pixel, all inside of the image."""
    _, kernel_h, kernel_w, in_ = call.inputs[1].shape
    inside = not any(call.op.padding)
    return _fits_windows(call) and inside and (kernel_h, kernel_w, *call.op.pool) == (1,) * 4 and in_ % WORD == 0


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    return _with(call, _wide(call))


def _with(call: Call[Any], factors: Array) -> tuple[Packed, ...]:
    """Return for each four outputs their biases, words of their weights in turn, and these factors; see
    kernels/xcv.h."""
    weight, bias = (data_of(call.inputs, i) for i in (1, 2))
    words, more = pack_words(weight), -len(weight) % TOGETHER
    biases, factors = (np.pad(terms, (0, more)).reshape(-1, 1, TOGETHER) for terms in (bias, factors))
    constants = np.concatenate([biases, words, factors.astype(np.int32)], axis=1)
    return (Packed("constants", np.ascontiguousarray(constants).reshape(-1)),)


def pack_words(weight: Array) -> Array:
    """Return weights as [out / 4, words, 4], both counts rounded up, with a word for four inputs of an output."""
    rows = weight.reshape(len(weight), -1)
    padded = np.pad(rows, ((0, -len(rows) % TOGETHER), (0, -rows.shape[1] % WORD)))
    return padded.view(np.int32).reshape(-1, TOGETHER, padded.shape[1] // WORD).transpose(0, 2, 1)


def _fits_depthwise(call: Call[Any]) -> bool:
    op, channels = call.op, call.x.shape[3]
    each = op.groups == channels == call.y.shape[3] and channels % WORD == 0
    return has_constants(call) and each and op.pool == (1, 1) and call.inputs[1].shape[1] <= WORD


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    return _depthwise_with(call, _wide(call))


def _depthwise_with(call: Call[Any], factors: Array) -> tuple[Packed, ...]:
    """Return a word for each column of a channel's weights, biases, and these factors."""
    weight, bias = (data_of(call.inputs, i) for i in (1, 2))
    columns = weight[..., 0].transpose(0, 2, 1)
    words = np.pad(columns, ((0, 0), (0, 0), (0, WORD - columns.shape[2])))
    return (
        Packed("weight", np.ascontiguousarray(words).view(np.int32).reshape(-1)),
        Packed("bias", bias),
        Packed("factor", factors.astype(np.int32)),
    )


def _scratch_depthwise(call: Call[Any]) -> int:
    op, kernel_w = call.op, call.inputs[1].shape[2]
    columns = (call.y.shape[2] - 1) * op.stride[1] + (kernel_w - 1) * op.dilation[1] + 1
    return int((WORD * columns + 1) * call.x.shape[3])


def _overlap_depthwise(call: Call[Any]) -> Distances:
    """Return the distance: the inputs of a row of outputs, or of two, are in scratch before it is written."""
    (n, in_h, in_w, in_), (_, out_h, out_w, out) = call.x.shape, call.y.shape
    _, kernel_h, kernel_w, _ = call.inputs[1].shape
    twice = (kernel_h, kernel_w, call.op.stride[0], *call.op.dilation, call.op.shift) == (3, 3, 1, 1, 1, 0)
    start = np.arange(0, out_h, 2 if twice else 1)
    first = np.clip(start * call.op.stride[0] - call.op.padding[0], 0, in_h)
    behind = np.append(start[1:], out_h)
    image = np.arange(n)[:, None]
    reads, writes = (image * in_h + first) * in_w * in_, (image * out_h + behind) * out_w * out
    return (overlap.distance(reads.reshape(-1), writes.reshape(-1), 0),)


def _scratch_windows(call: Call[Any]) -> int:
    pooled = prod(call.op.pool)
    windows = WINDOWS * to_multiple(prod(call.inputs[1].shape[1:]), WORD)
    return windows + (pooled * to_multiple(call.y.shape[3], WORD) if pooled > 1 else 0)


def _overlap_windows(call: Call[Any]) -> Distances:
    """Return the distance: windows are read before their outputs are written."""
    op = call.op
    steps = (op.stride[0] * op.pool[0], op.stride[1] * op.pool[1])
    return overlap.windows(lambda _: steps, lambda _: op.padding, 0)(call)


_DEPTHWISE = CONVOLUTION.for_cpu(
    "depthwise_xcv",
    XCV,
    fits=_fits_depthwise,
    pack=_pack_depthwise,
    scratch=_scratch_depthwise,
    overlap=_overlap_depthwise,
    splits=cut.rows_and_own_channels(WORD),
    channels="bt_qconv2d_channels_depthwise_xcv",
)
_PIXELS = Kernel[Any](
    "bt_qconv2d_pixels_xcv",
    "qconv2d/xcv.c",
    conv_params,
    XCV,
    _fits_pixels,
    _pack,
    overlap=overlap.windows(lambda op: op.stride, lambda op: op.padding, WINDOWS),
    splits=cut.rows_and_channels(TOGETHER),
    channels="bt_qconv2d_pixels_channels_xcv",
)
_WINDOWS = CONVOLUTION.for_cpu(
    "xcv",
    XCV,
    fits=_fits_windows,
    pack=_pack,
    scratch=_scratch_windows,
    overlap=_overlap_windows,
    splits=cut.rows_and_channels(TOGETHER),
    channels="bt_qconv2d_channels_xcv",
)
CONVOLUTIONS = tuple(k for kernel in (_DEPTHWISE, _PIXELS, _WINDOWS) for k in (_narrow(kernel), kernel))
_LINEAR = LINEAR.for_cpu(
    "xcv",
    XCV,
    fits=has_constants,
    pack=_pack,
    scratch=lambda call: to_multiple(call.x.shape[-1], WORD),
    overlap=overlap.rows(0),
    splits=cut.rows_or_channels(TOGETHER),
)
LINEARS = (_narrow(_LINEAR), _LINEAR)

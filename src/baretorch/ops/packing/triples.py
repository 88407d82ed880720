"""int8 layers that compute three positions with two multiplications; see kernels/triples.h. They serve cores that
multiply 32 bits and have no DSP extension: Armv6-M, Armv7-M and RV32."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.conv2d import pixel_distances, pointwise_back
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Lattice, Packed, Split, data_of, has_constants
from baretorch.ops.packing.layer import CONVOLUTION, LINEAR
from baretorch.targets.features import TRIPLES

TAPS = 64  # BT_TRIPLES_TAPS


def _pack_dense(call: Call[Any]) -> tuple[Packed, ...]:
    """Return [out, taps] with 128 added, and taps rounded up to an even number with weights of zero."""
    weight = data_of(call.inputs, 1)
    out, taps = weight.shape[0], prod(weight.shape[1:])
    biased = np.full((out, taps + taps % 2), 128, np.uint8)
    biased[:, :taps] = weight.reshape(out, taps).astype(np.int16) + 128
    return Packed("weight", biased), _terms(call)


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the weights channel by channel, and there column by column."""
    weight = data_of(call.inputs, 1)
    return Packed("weight", np.ascontiguousarray(weight[..., 0].transpose(0, 2, 1))), _terms(call)


def _pack_fours(call: Call[Any]) -> tuple[Packed, ...]:
    """Return [out / 4, in, 4] with 128 added."""
    weight = data_of(call.inputs, 1)
    out, in_ = weight.shape
    rows = np.full((-(-out // 4) * 4, in_), 128, np.uint8)
    rows[:out] = weight.astype(np.int16) + 128
    return Packed("weight", np.ascontiguousarray(rows.reshape(-1, 4, in_).transpose(0, 2, 1))), _terms(call)


def _terms(call: Call[Any]) -> Packed:
    """Return [out, 2]: bias and multiplier << shift."""
    factors = (data_of(call.inputs, 3).astype(np.int64) << call.op.shift).astype(np.uint32).view(np.int32)
    return Packed("terms", np.stack([data_of(call.inputs, 2), factors], axis=1))


def _fits_dense(call: Call[Any]) -> bool:
    return call.op.groups == 1 and _small_sums(call) and small_outputs(call)


def _pointwise(call: Call[Any]) -> bool:
    """Return whether each output pixel depends on one input pixel."""
    op = call.op
    return call.inputs[1].shape[1:3] == (1, 1) and not any(op.padding) and op.stride == op.pool == (1, 1)


def _fits_depthwise(call: Call[Any]) -> bool:
    channels, (out, kernel_h, kernel_w, _) = call.x.shape[3], call.inputs[1].shape
    return (
        call.op.groups == channels == out
        and call.op.pool == (1, 1)
        and call.op.dilation[1] == 1
        and kernel_h * kernel_w <= TAPS
        and _reaches_image(call)
        and _small_sums(call)
        and small_outputs(call)
    )


def _reaches_image(call: Call[Any]) -> bool:
    """Return whether the last window of a row reaches the image. Kernels pack one column of it or more."""
    stride, padding = call.op.stride, call.op.padding
    return bool((call.y.shape[2] - 1) * stride[1] + call.inputs[1].shape[2] > padding[2])


def _small_sums(call: Call[Any]) -> bool:
    """Return whether sums of 64 products stay below 2^20 for all inputs."""
    weight = call.inputs[1].data
    if weight is None:
        return False
    sizes: Array = np.abs(weight.reshape(weight.shape[0], -1).astype(np.int64))
    return int(np.add.reduceat(sizes, range(0, sizes.shape[1], TAPS), axis=1).max()) * 128 < 1 << 20


def small_outputs(call: Call[Any]) -> bool:
    """Return whether accumulators fit into 32 bits, and outputs into 16, for all inputs."""
    if not has_constants(call):
        return False
    weight, bias, multiplier = (data_of(call.inputs, i).astype(np.int64) for i in (1, 2, 3))
    largest = np.abs(weight.reshape(weight.shape[0], -1)).sum(axis=1) * 128 + np.abs(bias)
    factors = multiplier << call.op.shift
    outputs = max(int(a) * int(f) >> 32 for a, f in zip(largest, factors, strict=True))
    zero = abs(call.op.zero - call.op.lo)
    return int(largest.max()) < 1 << 31 and int(factors.max()) < 1 << 32 and outputs + zero + 2 < 1 << 15


def _scratch_dense(call: Call[Any]) -> int:
    _, kernel_h, kernel_w, in_ = call.inputs[1].shape
    pooled = 3 * call.y.shape[3] if call.op.pool != (1, 1) else 0
    return _scratch(kernel_h * kernel_w * in_, kernel_w * in_ + pooled)


def _scratch(taps: int, bytes_: int) -> int:
    return 8 * (taps + taps % 2) + 8 * -(-taps // TAPS) + bytes_


def _scratch_depthwise(call: Call[Any]) -> int:
    _, kernel_h, kernel_w, _ = call.inputs[1].shape
    taps = kernel_h * kernel_w
    columns: int = (call.y.shape[2] - 1) * call.op.stride[1] + kernel_w
    return 4 * (2 * kernel_h * columns + 2 + taps + taps % 2 + 2 + 3 * kernel_h)


def _splits_dense(call: Call[Any]) -> tuple[Split, ...]:
    return (cut.rows_and_channels if call.op.pool == (1, 1) else cut.rows_or_channels)(1)(call)


def _overlap_dense(call: Call[Any]) -> Distances:
    """Return the distance: three windows are read before they are written; with a pool, after their first places have
    been written."""
    return pixel_distances(0 if call.op.pool == (1, 1) else 3)(call)


def _overlap_depthwise(call: Call[Any]) -> Distances:
    """Return the distance: three rows are read, channel by channel, while they are written."""
    return (_three_rows(call, together=1),)


def _nearer_depthwise(call: Call[Any]) -> Lattice:
    """Return the distance for one channel: its three rows are read before they are written."""
    return Lattice(_three_rows(call, together=0), call.x.shape[3])


def _three_rows(call: Call[Any], together: int) -> int:
    (n, in_h, in_w, in_), (_, out_h, out_w, out) = call.x.shape, call.y.shape
    rows = np.arange(0, out_h, 3)
    first = np.clip(rows * call.op.stride[0] - call.op.padding[0], 0, in_h)
    image = np.arange(n)[:, None]
    reads = (image * in_h + first) * in_w * in_
    writes = (image * out_h + np.minimum(rows + 3, out_h)) * out_w * out
    return overlap.distance(reads.reshape(-1), writes.reshape(-1), together)


CONVOLUTIONS: tuple[Kernel[Any], ...] = (
    CONVOLUTION.for_cpu(
        "depthwise_triples",
        TRIPLES,
        fits=_fits_depthwise,
        pack=_pack_depthwise,
        scratch=_scratch_depthwise,
        overlap=_overlap_depthwise,
        nearer=_nearer_depthwise,
        splits=cut.rows,
    ),
    CONVOLUTION.for_cpu(
        "triples",
        TRIPLES,
        fits=_fits_dense,
        pack=_pack_dense,
        scratch=_scratch_dense,
        overlap=_overlap_dense,
        splits=_splits_dense,
        channels="bt_qconv2d_channels_triples",
        back="bt_qconv2d_back_triples",
        behind=pointwise_back(_pointwise, 0),
    ),
)
LINEARS: tuple[Kernel[Any], ...] = (
    LINEAR.for_cpu(
        "fours",
        TRIPLES,
        fits=small_outputs,
        pack=_pack_fours,
        overlap=overlap.rows(1),
        splits=cut.rows_or_channels(4),
    ),
)

"""The int8 layers that compute three positions with two multiplications; kernels/triples.h tells how.

They serve cores that multiply 32 bits and have no DSP extension: Armv6-M, Armv7-M and RV32.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from baretorch.ir import Array
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of

CORES = tuple(frozenset({feature}) for feature in ("v6m", "v7m", "rv32"))
TAPS = 64  # BT_TRIPLES_TAPS


def convolutions(params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    """The rows of qconv2d."""
    return (
        *(
            Kernel(
                "bt_qconv2d_depthwise_triples",
                "qconv2d/depthwise_triples.c",
                params,
                needs=core,
                fits=_fits_depthwise,
                pack=_pack_depthwise,
                scratch=_scratch_depthwise,
            )
            for core in CORES
        ),
        *(
            Kernel(
                "bt_qconv2d_triples",
                "qconv2d/triples.c",
                params,
                needs=core,
                fits=_fits_dense,
                pack=_pack_dense,
                scratch=_scratch_dense,
            )
            for core in CORES
        ),
    )


def _pack_dense(call: Call[Any]) -> tuple[Packed, ...]:
    """[out, taps] with 128 added, taps rounded up to an even number with weights of zero."""
    weight = data_of(call.inputs, 1)
    out, taps = weight.shape[0], prod(weight.shape[1:])
    biased = np.full((out, taps + taps % 2), 128, np.uint8)
    biased[:, :taps] = weight.reshape(out, taps).astype(np.int16) + 128
    return Packed("weight", biased), _terms(call)


def _pack_depthwise(call: Call[Any]) -> tuple[Packed, ...]:
    """Channel by channel, and there column by column."""
    weight = data_of(call.inputs, 1)
    return Packed("weight", np.ascontiguousarray(weight[..., 0].transpose(0, 2, 1))), _terms(call)


def _terms(call: Call[Any]) -> Packed:
    """[out, 2]: bias and multiplier << shift."""
    factors = (data_of(call.inputs, 3).astype(np.int64) << call.op.shift).astype(np.uint32).view(np.int32)
    return Packed("terms", np.stack([data_of(call.inputs, 2), factors], axis=1))


def _fits_dense(call: Call[Any]) -> bool:
    return call.op.groups == 1 and _in_bounds(call)


def _fits_depthwise(call: Call[Any]) -> bool:
    channels, (out, kernel_h, kernel_w, _) = call.x.shape[3], call.inputs[1].shape
    return (
        call.op.groups == channels == out
        and call.op.pool == (1, 1)
        and call.op.dilation[1] == 1
        and kernel_h * kernel_w <= TAPS
        and _in_bounds(call)
    )


def _in_bounds(call: Call[Any]) -> bool:
    """Whatever the inputs are, sums of 64 products stay below 2^20, accumulators fit into 32 bits, and so do outputs
    with 16 bits of fraction."""
    if any(t.data is None for t in call.inputs[1:]):
        return False
    weight, bias, multiplier = (data_of(call.inputs, i).astype(np.int64) for i in (1, 2, 3))
    sizes: Array = np.abs(weight.reshape(weight.shape[0], -1))
    factor = multiplier << call.op.shift
    if np.add.reduceat(sizes, range(0, sizes.shape[1], TAPS), axis=1).max() * 128 >= 1 << 20 or factor.max() >= 1 << 32:
        return False
    largest = sizes.sum(axis=1) * 128 + np.abs(bias)
    outputs = max(int(a) * int(f) for a, f in zip(largest, factor, strict=True)) >> 32
    return int(largest.max()) < 1 << 31 and outputs + abs(call.op.zero - call.op.lo) + 2 < 1 << 15


def _scratch_dense(call: Call[Any]) -> int:
    _, kernel_h, kernel_w, in_ = call.inputs[1].shape
    taps = kernel_h * kernel_w * in_
    pooled = 3 * call.y.shape[3] if call.op.pool != (1, 1) else 0
    return 8 * (taps + taps % 2) + 8 * -(-taps // TAPS) + kernel_w * in_ + pooled


def _scratch_depthwise(call: Call[Any]) -> int:
    _, kernel_h, kernel_w, _ = call.inputs[1].shape
    taps = kernel_h * kernel_w
    columns = (call.y.shape[2] - 1) * call.op.stride[1] + kernel_w
    return 8 * (kernel_h * columns + 2) + 4 * (taps + taps % 2)

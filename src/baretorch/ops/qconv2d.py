"""qconv2d: the int8 convolution on NHWC, with limits and a following max pool in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Signature, Tensor
from baretorch.ops import conv2d
from baretorch.ops.arithmetic import requantize
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of
from baretorch.ops.qlinear import need_accumulator
from baretorch.ops.window import Padding, Pair


@dataclass(frozen=True)
class QConv2d(Op):
    """x int8[N, H, W, C], weight int8[O, KH, KW, C / groups], bias int32[O], multiplier int32[O] -> int8.

    Outside of the image stands x's zero point `x_zero`; bias = real bias - x_zero * the sum of the channel's weights,
    in the accumulator's scale. Geometry and `pool` as in conv2d: of a window the largest accumulator counts."""

    name: ClassVar[str] = "qconv2d"
    x_zero: int
    zero: int
    shift: int = 0
    lo: int = -128
    hi: int = 127
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    pool: Pair = (1, 1)

    @property
    def geometry(self) -> Conv2d:
        """The float convolution of the same shape."""
        return Conv2d(self.stride, self.padding, self.dilation, self.groups, pool=self.pool)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs)
        (signature,) = self.geometry.infer([replace(t, dtype=DType.FLOAT32, data=None) for t in inputs[:2]])
        return (replace(signature, dtype=DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Exact in float64: accumulators are integers below 2^53."""
        x, weight, bias, multiplier = inputs
        top, bottom, left, right = self.padding
        around = ((0, 0), (top, bottom), (left, right), (0, 0))
        padded = np.pad(x, around, constant_values=self.x_zero)
        acc = replace(self.geometry, padding=(0, 0, 0, 0)).sums(padded, weight) + bias
        return (requantize(acc.astype(np.int64), multiplier, self.shift, self.zero, self.lo, self.hi),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return self.geometry.macs(inputs, outputs)


def _params(call: Call[QConv2d]) -> Params:
    op = call.op
    shape = conv2d.geometry_params(Call(op.geometry, call.inputs, call.outputs))
    own = (("shift", op.shift), ("x_zero", op.x_zero), ("zero", op.zero), ("lo", op.lo), ("hi", op.hi))
    return Params("bt_qconv2d", (*shape, *own))


def _pack(call: Call[QConv2d]) -> tuple[Packed, ...]:
    return tuple(Packed(role, data_of(call.inputs, i)) for i, role in enumerate(("weight", "bias", "multiplier"), 1))


def _fits(call: Call[QConv2d]) -> bool:
    return all(t.data is not None for t in call.inputs[1:])


def _pack_pairs(call: Call[QConv2d]) -> tuple[Packed, ...]:
    """Two channels in a halfword, eight taps together; see kernels/qconv2d/qconv2d.h."""
    weight = data_of(call.inputs, 1)
    out, taps = weight.shape[0], prod(weight.shape[1:])
    full = np.zeros((-(-out // 2) * 2, -(-taps // 8) * 8), np.int32)
    full[:out, :taps] = weight.reshape(out, taps)
    pairs = (256 * full[1::2] + full[0::2]).astype(np.int16)
    # [channel pair, taps / 4, second of a pair, first of a pair] -> words in the order of the loop
    fours = pairs.reshape(full.shape[0] // 2, full.shape[1] // 4, 2, 2)
    words = np.ascontiguousarray(fours.transpose(0, 1, 3, 2)).view(np.int32).reshape(-1)
    return (Packed("weight", words), *_pack(call)[1:])


def _fits_pairs(call: Call[QConv2d]) -> bool:
    """One group, and no channel's sum can reach 2^23, whatever the inputs are."""
    if not _fits(call) or call.op.groups != 1:
        return False
    weight = data_of(call.inputs, 1).astype(np.int64)
    return int(np.abs(weight).reshape(weight.shape[0], -1).sum(axis=1).max()) * 128 < 1 << 23


def _scratch_pairs(call: Call[QConv2d]) -> int:
    taps = prod(call.inputs[1].shape[1:])
    pairs = max(1, -(-prod(call.op.pool) // 2))
    bytes_ = -(-taps // 4) * 4 if call.x.shape[3] % 4 else 0
    return 4 * -(-taps // 8) * 8 * pairs + bytes_


def _pack_depthwise(call: Call[QConv2d]) -> tuple[Packed, ...]:
    """Tap by tap, channels together."""
    weight = data_of(call.inputs, 1)
    return (Packed("weight", np.ascontiguousarray(weight[..., 0].transpose(1, 2, 0))), *_pack(call)[1:])


def _fits_depthwise(call: Call[QConv2d]) -> bool:
    channels = call.x.shape[3]
    return _fits(call) and call.op.groups == channels == call.y.shape[3] >= 4 and call.op.pool == (1, 1)


def _scratch_depthwise(call: Call[QConv2d]) -> int:
    return 8 * prod(call.inputs[1].shape[1:3]) + 4


KERNELS: tuple[Kernel[QConv2d], ...] = (
    Kernel(
        "bt_qconv2d_depthwise_dsp",
        "qconv2d/depthwise_dsp.c",
        _params,
        needs=frozenset({"dsp"}),
        fits=_fits_depthwise,
        pack=_pack_depthwise,
        scratch=_scratch_depthwise,
    ),
    Kernel(
        "bt_qconv2d_dsp",
        "qconv2d/dsp.c",
        _params,
        needs=frozenset({"dsp"}),
        fits=_fits_pairs,
        pack=_pack_pairs,
        scratch=_scratch_pairs,
    ),
    Kernel("bt_qconv2d_ref", "qconv2d/ref.c", _params, fits=_fits, pack=_pack),
)

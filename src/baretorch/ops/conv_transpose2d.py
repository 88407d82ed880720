"""conv_transpose2d on NHWC: the gradient of a strided convolution, with bias and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from baretorch.ir.graph import Array, DType, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need, need_channels, need_float32
from baretorch.ops.helpers.families import Limited
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, bias_of, data_of, fields_of, has_constants
from baretorch.ops.helpers.window import Padding, Pair, padding_params, pair_params, per_group, size_params


@dataclass(frozen=True)
class ConvTranspose2d(Limited, name="conv_transpose2d"):
    """x[N, H, W, C], weight[O, KH, KW, C / groups], optional bias[O] -> [N, H', W', O], limited to [lo, hi].

    Each input adds the kernel, times its value, to the output at its own place times `stride`. `padding` (top, bottom,
    left, right) is removed from the result; PyTorch's output_padding is subtracted from bottom and right, which may
    become negative: then places that no input reaches are added.
    """

    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    lo: float = -inf
    hi: float = inf

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_channels(self, inputs, self.groups)
        x, weight = inputs[:2]
        need(
            min(*x.shape[1:3], *weight.shape[1:3], *self.stride, *self.dilation) > 0,
            self,
            "an image or a window without size or stride",
            inputs,
            "image, kernel, stride and dilation of 1 or more",
        )
        h, w = self._size(x.shape, weight.shape)
        need(h > 0 and w > 0, self, "the output is empty", inputs, f"less padding than {self.padding}")
        return (Signature((x.shape[0], h, w, weight.shape[0]), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            y = self.sums(inputs[0].astype(np.float64), inputs[1].astype(np.float64))
            if len(inputs) > 2:
                y = y + inputs[2]
            return (np.clip(y, self.lo, self.hi).astype(np.float32),)

    def sums(self, x: Array, weight: Array) -> Array:
        """Return the output before bias and limits."""
        n, in_h, in_w, _ = x.shape
        out, kernel_h, kernel_w, depth = weight.shape
        h, w = self._size(x.shape, weight.shape)
        top, _, left, _ = self.padding
        (sh, sw), (dh, dw) = self.stride, self.dilation
        rows, columns = top + h, left + w  # of the canvas; the rest is cut off
        canvas = np.zeros((n, max(rows, in_h * sh + kernel_h * dh), max(columns, in_w * sw + kernel_w * dw), out))
        groups = x.reshape(n, in_h, in_w, self.groups, depth)
        for i in range(kernel_h):
            for j in range(kernel_w):
                part = per_group(groups, weight[:, i, j].reshape(self.groups, -1, depth))
                spread = canvas[:, i * dh :: sh, j * dw :: sw][:, :in_h, :in_w]
                spread += part.reshape(n, in_h, in_w, out)
        return canvas[:, top:rows, left:columns]

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return inputs[0].count * prod(inputs[1].shape[:3]) // self.groups

    def _size(self, x: Shape, weight: Shape) -> Pair:
        """Return height and width of the output."""
        top, bottom, left, right = self.padding
        return (
            (x[1] - 1) * self.stride[0] + self.dilation[0] * (weight[1] - 1) + 1 - top - bottom,
            (x[2] - 1) * self.stride[1] + self.dilation[1] * (weight[2] - 1) + 1 - left - right,
        )

    def takes_affine(self) -> bool:
        return (self.lo, self.hi) == (-inf, inf)


def _params(call: Call[ConvTranspose2d]) -> Params:
    op = call.op
    return Params(
        "bt_conv_transpose2d_f32",
        (
            *size_params(call.x.shape, call.inputs[1].shape, call.y.shape),
            *pair_params("stride", op.stride),
            *padding_params(op.padding),
            *pair_params("dilation", op.dilation),
            *fields_of(op, "groups", "lo", "hi"),
        ),
    )


def _pack(call: Call[ConvTranspose2d]) -> tuple[Packed, ...]:
    """Return the weights tap by tap: the kernel adds the taps that meet an output one after the other."""
    weight = data_of(call.inputs, 1)
    return (Packed("weight", weight.transpose(1, 2, 0, 3)), Packed("bias", bias_of(call)))


KERNELS: tuple[Kernel[ConvTranspose2d], ...] = (
    Kernel("bt_conv_transpose2d_f32_ref", "conv_transpose2d/ref.c", _params, fits=has_constants, pack=_pack),
)

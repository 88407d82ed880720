"""int_conv2d and int_matmul: sums of products of integer networks as int32, for layers that are not requantized by the
rule of the other int8 layers. See integer.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, DType, Piece, Signature, Tensor
from baretorch.ops import conv2d, matmul
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of, has_constants, pack_inputs
from baretorch.ops.helpers.loops import Dims
from baretorch.ops.helpers.window import Padding, Pair, padding_params, pair_params, size_params
from baretorch.ops.int8.qmatmul import ByteProduct


@dataclass(frozen=True)
class IntConv2d(Quantized, name="int_conv2d"):
    """x int8[N, H, W, C], weight int8[O, KH, KW, C / groups], bias int32[O] -> the convolution as int32.

    Padding is x's zero `x_zero`; bias = real bias - x_zero * the sum of the channel's weights, as in qconv2d."""

    x_zero: int
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def geometry(self) -> Conv2d:
        return Conv2d(self.stride, self.padding, self.dilation, self.groups)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        _, weight, bias = inputs
        types = tuple(t.dtype for t in inputs)
        right = types == (DType.INT8, DType.INT8, DType.INT32) and bias.shape == weight.shape[:1]
        need(
            right, self, "the inputs are not those of an integer layer", inputs, "x int8, weight int8, bias int32[out]"
        )
        return self.infer_as_float(inputs[:2], DType.INT32)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: sums are integers below 2^53."""
        x, weight, bias = inputs
        top, bottom, left, right = self.padding
        padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=self.x_zero)
        sums = replace(self.geometry, padding=(0, 0, 0, 0)).sums(padded, weight)
        return ((sums.astype(np.int64) + bias).astype(np.int32),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return conv2d.cut_convolution(self, inputs, axis, start, stop)


@dataclass(frozen=True)
class IntMatmul(ByteProduct, name="int_matmul"):
    """a int8[..., m, k], b int8[..., k, n] -> the product of a - a_zero and b - b_zero as int32.

    Broadcasting and the orders that operands are read in are those of matmul."""

    a_zero: int
    b_zero: int
    a_dims: Dims = ()
    b_dims: Dims = ()
    y_dims: Dims = ()

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(all(t.dtype is DType.INT8 for t in inputs), self, "the inputs are not int8", inputs, "int8 and int8")
        return self.infer_as_float(inputs, DType.INT32)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (self.arrange(self.sums(*inputs).astype(np.int32)),)


def _conv_params(call: Call[IntConv2d]) -> Params:
    op = call.op
    return Params(
        "bt_int_conv2d",
        (
            *size_params(call.x.shape, call.inputs[1].shape, call.y.shape),
            *pair_params("stride", op.stride),
            *padding_params(op.padding),
            *pair_params("dilation", op.dilation),
            *fields_of(op, "groups", "x_zero"),
        ),
    )


def _matmul_params(call: Call[IntMatmul]) -> Params:
    own = fields_of(call.op, "a_zero", "b_zero")
    return Params("bt_int_matmul", (*matmul.shape_fields(call.op.geometry, call.inputs), *own))


CONV: tuple[Kernel[IntConv2d], ...] = (
    Kernel(
        "bt_int_conv2d_ref",
        "integer/sums_ref.c",
        _conv_params,
        fits=has_constants,
        pack=lambda call: pack_inputs(call, "weight", "bias"),
        splits=cut.rows,
    ),
)
MATMUL: tuple[Kernel[IntMatmul], ...] = (
    Kernel(
        "bt_int_matmul_ref",
        "integer/sums_ref.c",
        _matmul_params,
        fits=lambda call: matmul.loops_fit(call.op.geometry, call.inputs),
        splits=cut.outermost,
    ),
)

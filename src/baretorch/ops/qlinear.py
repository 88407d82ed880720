"""qlinear: the int8 linear layer. The input's zero point is folded into the bias ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Node, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops import cut, pack_dsp, pack_mve, pack_triples
from baretorch.ops.arithmetic import requantize
from baretorch.ops.check import need
from baretorch.ops.int8 import Walk
from baretorch.ops.int8_layer import layer_of, need_accumulator
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.qconv2d import QConv2d


@dataclass(frozen=True)
class QLinear(Op):
    """x int8[..., in], weight int8[out, in], bias int32[out], multiplier int32[out] -> int8[..., out].

    bias = real bias - x's zero point * the sum of the row, in the accumulator's scale."""

    name: ClassVar[str] = "qlinear"
    carried: ClassVar[slice] = slice(1)
    by_column: ClassVar[bool] = True
    zero: int
    shift: int = 0
    lo: int = -128
    hi: int = 127

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs)
        x, weight = inputs[:2]
        need(
            len(weight.shape) == 2 and bool(x.shape) and x.shape[-1] == weight.shape[1],
            self,
            "the input's last dimension is not the weight's",
            inputs,
            "x[..., in] and weight[out, in]",
        )
        return (Signature((*x.shape[:-1], weight.shape[0]), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weight, bias, multiplier = inputs
        acc = x.astype(np.int64) @ weight.T.astype(np.int64) + bias
        return (requantize(acc, multiplier, self.shift, self.zero, self.lo, self.hi),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        if axis == len(y.shape) - 1:
            return cut.channels_of(self, inputs, start, stop)
        return cut.along(self, inputs, axis, start, stop)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * inputs[1].shape[1]

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims) if dims[-1] == len(dims) - 1 else None


ROWS = 3  # from which on convolutions are faster


def linear(walk: Walk, node: Node) -> None:
    """The int8 form of linear. Of several rows: as a convolution of as many pixels, whose kernels take several at a
    time."""
    op, x, (out,) = node.op, node.inputs[0], node.outputs
    assert isinstance(op, Linear)
    made = layer_of(walk, node, op.lo, op.hi)
    *outer, in_ = walk.graph[x].shape
    if prod(outer) < ROWS:
        walk.emit(node, QLinear(made.zero, made.shift, made.lo, made.hi), walk.int8(x), *made.constants)
        return
    shape = walk.graph[out].shape
    taps = walk.constant(walk.graph[node.inputs[1]], "int8", data_of([walk.new[made.weight]], 0).reshape(-1, 1, 1, in_))
    image = walk.view(Reshape((1, prod(outer), 1, in_)), x, walk.int8(x))
    pixels = QConv2d(made.x_zero, made.zero, made.shift, made.lo, made.hi)
    y = walk.add(pixels, out, (1, prod(outer), 1, shape[-1]), walk.scale(out), image, taps, made.bias, made.multiplier)
    walk.stored[out] = walk.view(Reshape(shape), out, y)


def _params(call: Call[QLinear]) -> Params:
    op = call.op
    out, in_ = call.inputs[1].shape
    return Params(
        "bt_qlinear",
        (
            ("batch", prod(call.x.shape[:-1])),
            ("in", in_),
            ("out", out),
            ("shift", op.shift),
            ("zero", op.zero),
            ("lo", op.lo),
            ("hi", op.hi),
        ),
    )


def _pack(call: Call[QLinear]) -> tuple[Packed, ...]:
    return tuple(Packed(role, data_of(call.inputs, i)) for i, role in enumerate(("weight", "bias", "multiplier"), 1))


def _fits(call: Call[QLinear]) -> bool:
    return all(t.data is not None for t in call.inputs[1:])


KERNELS: tuple[Kernel[QLinear], ...] = (
    *pack_mve.linears(_params),
    *pack_dsp.linears(_params),
    *pack_triples.linears(_params),
    Kernel("bt_qlinear_ref", "qlinear/ref.c", _params, fits=_fits, pack=_pack, splits=cut.rows_or_channels(1)),
)

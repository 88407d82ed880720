"""qconv2d: the int8 convolution on NHWC, with limits and a following max pool in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Piece, Signature, Tensor
from baretorch.ops import conv2d
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Kernel, has_constants
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.int8 import qconv2d16
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.int8.layer import layer_of, need_accumulator
from baretorch.ops.int8.qpool import QMaxPool16
from baretorch.ops.int8.rules import Walk
from baretorch.ops.packing import avr, dsp, int4, mve, sparse, triples, xcv
from baretorch.ops.packing.layer import CONVOLUTION, pack_layer
from baretorch.ops.pool import MaxPool2d
from baretorch.targets.features import ANY_CPU, DSP


@dataclass(frozen=True)
class QConv2d(Quantized, name="qconv2d"):
    """x int8[N, H, W, C], weight int8[O, KH, KW, C / groups], bias int32[O], multiplier int32[O] -> int8.

    Padding is x's zero point `x_zero`; bias = real bias - x_zero * the sum of the channel's weights, in the
    accumulator's scale. Geometry and `pool` are those of conv2d: the largest accumulator of a window counts. With 4
    `bits`, weights are within -8..7 and stored as that; `group` is that of qlinear, for windows of one pixel.
    """

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
    bits: int = 8
    group: int = 0

    @property
    def geometry(self) -> Conv2d:
        return Conv2d(self.stride, self.padding, self.dilation, self.groups, pool=self.pool)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs, self.bits, self.group)
        need(
            not self.group or (inputs[1].shape[1:3] == (1, 1) and self.geometry == Conv2d()),
            self,
            "its windows are larger than a pixel",
            inputs,
            "a pointwise convolution where weights have groups",
        )
        return self.infer_as_float(inputs[:2], DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: accumulators are integers below 2^53."""
        x, weight, bias, multiplier = inputs
        top, bottom, left, right = self.padding
        around = ((0, 0), (top, bottom), (left, right), (0, 0))
        padded = np.pad(x, around, constant_values=self.x_zero)
        acc = replace(self.geometry, padding=(0, 0, 0, 0)).sums(padded, weight) + bias
        return (requantize(acc.astype(np.int64), multiplier, self.shift, self.zero, self.lo, self.hi),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return conv2d.cut_convolution(self, inputs, axis, start, stop)


def conv(walk: Walk, node: Node) -> None:
    """Add the int8 form of conv2d."""
    op = node.op
    assert isinstance(op, Conv2d)
    (out,) = node.outputs
    if walk.scale(out).bits == 16:
        whole16 = qconv2d16.convolution(walk, node, op)
        if op.pool == (1, 1):
            walk.wide[out] = whole16
            return
        walk.wide[out] = walk.add_int16(QMaxPool16(op.pool, op.pool), out, whole16)
        return
    made = layer_of(walk, node, op.lo, op.hi)
    own = (made.x_zero, made.zero, made.shift, made.lo, made.hi)
    whole = QConv2d(*own, op.stride, op.padding, op.dilation, op.groups, op.pool, made.bits, made.group)
    inputs = (walk.int8(node.inputs[0]), *made.constants)
    if made.bits == 8 or op.pool == (1, 1):
        walk.emit(node, whole, *inputs)
        return
    plain = replace(whole, pool=(1, 1))  # kernels for fewer bits do not pool
    (signature,) = plain.infer([walk.tensor(n) for n in inputs])
    walk.emit(node, MaxPool2d(op.pool, op.pool), walk.add(plain, out, signature.shape, walk.quant(out), *inputs))


_INT8: tuple[Kernel[QConv2d], ...] = (
    *mve.CONVOLUTIONS,
    *xcv.CONVOLUTIONS,
    *sparse.convolutions(DSP),
    *dsp.CONVOLUTIONS,
    *sparse.convolutions(*sparse.PORTABLE),
    *triples.CONVOLUTIONS,
    *avr.CONVOLUTIONS,
    *sparse.convolutions(ANY_CPU),
    replace(
        CONVOLUTION,
        fits=has_constants,
        pack=pack_layer,
        splits=cut.rows_and_channels(1),
        channels="bt_qconv2d_channels_ref",
    ),
)
KERNELS: tuple[Kernel[QConv2d], ...] = (*map(int4.for_8_bits, _INT8), *int4.CONVOLUTIONS)

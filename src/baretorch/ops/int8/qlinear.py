"""qlinear: the int8 linear layer. The input's zero point is folded into the bias ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Signature, Tensor
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Split, data_of, has_constants
from baretorch.ops.int8 import qconv2d, qconv2d16
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.int8.layer import layer_of, need_accumulator
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.rules import Walk
from baretorch.ops.linear import Linear, RowByRow
from baretorch.ops.packing import avr, dsp, int4, mve, sparse, triples, xcv
from baretorch.ops.packing.layer import LINEAR, pack_layer
from baretorch.targets.features import ANY_CPU, AVR, DSP


@dataclass(frozen=True)
class QLinear(RowByRow, name="qlinear"):
    """x int8[..., in], weight int8[out, in], bias int32[out], multiplier int32[out] -> int8[..., out].

    bias = real bias - x's zero point * the sum of the row, in the accumulator's scale. With 4 `bits`, weights are
    within -8..7 and stored as that. With a `group`, each group of that many inputs has a whole factor, which is stored
    next to the weights.
    """

    zero: int
    shift: int = 0
    lo: int = -128
    hi: int = 127
    bits: int = 8
    group: int = 0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs, self.bits, self.group)
        x, weight = inputs[:2]
        valid = len(weight.shape) == 2 and bool(x.shape) and x.shape[-1] == weight.shape[1]
        need(valid, self, "the input's last dimension is not the weight's", inputs, "x[..., in] and weight[out, in]")
        return (Signature((*x.shape[:-1], weight.shape[0]), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: accumulators are integers below 2^53."""
        x, weight, bias, multiplier = inputs
        acc = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
        return (requantize(acc.astype(np.int64), multiplier, self.shift, self.zero, self.lo, self.hi),)


def linear(walk: Walk, node: Node) -> None:
    """Add the int8 form of linear."""
    op = node.op
    assert isinstance(op, Linear)
    if walk.scale(node.outputs[0]).bits == 16:
        walk.wide[node.outputs[0]] = qconv2d16.linear(walk, node, op.lo, op.hi)
        return
    made = layer_of(walk, node, op.lo, op.hi)
    whole = QLinear(made.zero, made.shift, made.lo, made.hi, made.bits, made.group)
    walk.emit(node, whole, walk.int8(node.inputs[0]), *made.constants)


ROWS = 3  # from which on a convolution's kernels are faster, on every core that has some of its own


def as_pixels(call: Call[QLinear]) -> Call[QConv2d]:
    """Return the layer as a convolution with a pixel for each row of x."""
    op, (x, weight, *others) = call.op, call.inputs
    out, in_ = weight.shape
    image = replace(x, shape=(1, _rows(call), 1, in_))
    taps = replace(weight, shape=(out, 1, 1, in_), data=data_of(call.inputs, 1).reshape(out, 1, 1, in_))
    y = replace(call.y, shape=(1, _rows(call), 1, out))
    whole = QConv2d(0, op.zero, op.shift, op.lo, op.hi, bits=op.bits, group=op.group)
    return Call(whole, (image, taps, *others), (y,), call.pitch)


def _rows(call: Call[QLinear]) -> int:
    return prod(call.x.shape[:-1])


def _of_pixels(kernel: Kernel[QConv2d]) -> Kernel[QLinear]:
    """Return a convolution's kernel, which takes several pixels at a time, for a linear layer of several rows."""
    pack = kernel.pack
    assert pack is not None, f"{kernel.symbol} takes weights as they are"

    def splits(call: Call[QLinear]) -> tuple[Split, ...]:
        last = len(call.y.shape) - 1
        found = kernel.splits(as_pixels(call))
        return tuple(s for f in found for s in (cut.rows(call) if f.axis == 1 else (Split(last, f.step),)))

    return Kernel(
        kernel.symbol,
        kernel.source,
        lambda call: kernel.params(as_pixels(call)),
        kernel.needs,
        lambda call: _rows(call) >= ROWS and has_constants(call) and kernel.fits(as_pixels(call)),
        lambda call: pack(as_pixels(call)),
        lambda call: kernel.scratch(as_pixels(call)),
        lambda call: kernel.overlap(as_pixels(call)),
        splits=splits,
        channels=kernel.channels,
    )


def _thin(call: Call[QLinear]) -> bool:
    """Return whether the weights are rows of one input, or one row: in fours they would take four times their bytes,
    and be no faster."""
    return has_constants(call) and 1 in call.inputs[1].shape


_REF = replace(LINEAR, fits=has_constants, pack=pack_layer, splits=cut.rows_or_channels(1))
KERNELS: tuple[Kernel[QLinear], ...] = (
    *(_of_pixels(k) for k in qconv2d.KERNELS if k.needs and k.needs != AVR),
    *int4.LINEARS,
    *mve.LINEARS,
    *xcv.LINEARS,
    replace(_REF, needs=DSP, fits=_thin),
    *sparse.linears(DSP),
    *dsp.LINEARS,
    *sparse.linears(*sparse.PORTABLE),
    *triples.LINEARS,
    *avr.LINEARS,
    *sparse.linears(ANY_CPU),
    _REF,
)

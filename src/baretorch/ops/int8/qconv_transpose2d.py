"""qconv_transpose2d: the int8 transposed convolution on NHWC, with limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from baretorch.ir.graph import Array, DType, Node, Signature, Tensor
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of, has_constants
from baretorch.ops.helpers.window import Padding, Pair, padding_params, pair_params, size_params
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.int8.layer import layer_of, need_accumulator
from baretorch.ops.int8.rules import Walk
from baretorch.ops.packing.layer import pack_layer
from baretorch.targets.features import DSP


@dataclass(frozen=True)
class QConvTranspose2d(Quantized, name="qconv_transpose2d"):
    """x int8[N, H, W, C], weight int8[O, KH, KW, C / groups], bias int32[O], multiplier int32[O] -> int8.

    Geometry is that of conv_transpose2d. A different number of inputs reaches each place, so the kernel subtracts x's
    zero point, and the bias does not contain it.
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

    @property
    def geometry(self) -> ConvTranspose2d:
        return ConvTranspose2d(self.stride, self.padding, self.dilation, self.groups)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs)
        return self.infer_as_float(inputs[:2], DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: accumulators are integers below 2^53."""
        x, weight, bias, multiplier = inputs
        acc = self.geometry.sums(x.astype(float) - self.x_zero, weight.astype(float)) + bias
        return (requantize(acc.astype(int), multiplier, self.shift, self.zero, self.lo, self.hi),)


def conv_transpose(walk: Walk, node: Node) -> None:
    """Add the int8 form of conv_transpose2d. The bias does not contain the input's zero point, because not every output
    uses all of the weights."""
    op = node.op
    assert isinstance(op, ConvTranspose2d)
    made = layer_of(walk, node, op.lo, op.hi, folds=False)
    own = (made.x_zero, made.zero, made.shift, made.lo, made.hi)
    whole = QConvTranspose2d(*own, op.stride, op.padding, op.dilation, op.groups)
    walk.emit(node, whole, walk.int8(node.inputs[0]), *made.constants)


def _params(call: Call[QConvTranspose2d]) -> Params:
    op = call.op
    step_h, step_w = (stride // gcd(stride, reach) for stride, reach in zip(op.stride, op.dilation, strict=True))
    return Params(
        "bt_qconv_transpose2d",
        (
            *size_params(call.x.shape, call.inputs[1].shape, call.y.shape),
            *pair_params("stride", op.stride),
            *pair_params("step", (step_h, step_w)),
            *padding_params(op.padding),
            *pair_params("dilation", op.dilation),
            *fields_of(op, "groups", "shift", "x_zero", "zero", "lo", "hi"),
        ),
    )


def _fours(call: Call[QConvTranspose2d]) -> bool:
    return has_constants(call) and call.inputs[1].shape[3] >= 4


_REF = Kernel[QConvTranspose2d](
    "bt_qconv_transpose2d_ref", "qconv_transpose2d/ref.c", _params, fits=has_constants, pack=pack_layer
)
KERNELS = (_REF.for_cpu("dsp", DSP, fits=_fours), _REF)

"""conv_tbc: a convolution over the time of sequences, in float and in int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Params, fields_of, has_constants, pack_inputs
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.int8.layer import layer_of, need_accumulator
from baretorch.ops.int8.rules import Walk
from baretorch.ops.packing.layer import pack_layer
from baretorch.targets.features import DSP


@dataclass(frozen=True)
class ConvTbc(Op, name="conv_tbc"):
    """x[T, N, C], weight[O, K, C], bias[O] -> [T', N, O], with `pad` zeros before the first time and after the last."""

    pad: int = 0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        x, weight = inputs[:2]
        out, kernel, channels = weight.shape
        need(x.shape[2] == channels, self, "input and weight differ in channels", inputs, "x[T, N, C], weight[O, K, C]")
        times = x.shape[0] + 2 * self.pad - kernel + 1
        need(times > 0, self, "the output is empty", inputs, f"a time of {kernel} steps or more")
        return (Signature((times, x.shape[1], out), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weight, bias = inputs
        return ((self.sums(x, weight, 0.0) + bias).astype(np.float32),)

    def sums(self, x: Array, weight: Array, outside: float) -> Array:
        """Return the convolution in float64, without bias."""
        padded = np.pad(x.astype(np.float64), ((self.pad, self.pad), (0, 0), (0, 0)), constant_values=outside)
        times = len(padded) - weight.shape[1] + 1
        parts = (padded[k : k + times] @ weight[:, k].T.astype(np.float64) for k in range(weight.shape[1]))
        return np.asarray(sum(parts))

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * inputs[1].shape[1] * inputs[1].shape[2]


@dataclass(frozen=True)
class QConvTbc(Quantized, name="qconv_tbc"):
    """x int8[T, N, C], weight int8[O, K, C], bias int32[O], multiplier int32[O] -> int8[T', N, O]; padding is `x_zero`,
    whose products are folded into the bias."""

    x_zero: int
    zero: int
    shift: int
    lo: int
    hi: int
    pad: int = 0

    @property
    def geometry(self) -> ConvTbc:
        return ConvTbc(self.pad)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_accumulator(self, inputs)
        return self.infer_as_float(inputs[:2], DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weight, bias, multiplier = inputs
        sums = self.geometry.sums(x, weight, self.x_zero).astype(np.int64) + bias
        return (requantize(sums, multiplier, self.shift, self.zero, self.lo, self.hi),)


def int8(walk: Walk, node: Node) -> None:
    """Add the int8 form of conv_tbc."""
    op = node.op
    assert isinstance(op, ConvTbc)
    made = layer_of(walk, node, -inf, inf)
    whole = QConvTbc(made.x_zero, made.zero, made.shift, made.lo, made.hi, op.pad)
    walk.emit(node, whole, walk.int8(node.inputs[0]), *made.constants)


def _sizes(call: Call[ConvTbc] | Call[QConvTbc]) -> Fields:
    (time, batch, channels), (out, kernel, _) = call.x.shape, call.inputs[1].shape
    sizes = (("time", time), ("batch", batch), ("in", channels), ("out_time", call.y.shape[0]), ("out", out))
    return (*sizes, ("kernel", kernel), ("pad", call.op.pad))


def _params(call: Call[ConvTbc]) -> Params:
    return Params("bt_conv_tbc_f32", _sizes(call))


def _int8_params(call: Call[QConvTbc]) -> Params:
    return Params("bt_qconv_tbc", (*_sizes(call), *fields_of(call.op, "shift", "x_zero", "zero", "lo", "hi")))


KERNELS: tuple[Kernel[ConvTbc], ...] = (
    Kernel(
        "bt_conv_tbc_f32_ref",
        "conv_tbc/ref.c",
        _params,
        fits=has_constants,
        pack=lambda call: pack_inputs(call, "weight", "bias"),
    ),
)
_INT8 = Kernel[QConvTbc]("bt_qconv_tbc_ref", "conv_tbc/ref.c", _int8_params, fits=has_constants, pack=pack_layer)
INT8_KERNELS = (_INT8.for_cpu("dsp", DSP), _INT8)

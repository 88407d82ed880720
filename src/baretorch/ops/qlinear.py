"""qlinear: the int8 linear layer. The input's zero point is folded into the bias ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Permuted, Shape, Signature, Tensor
from baretorch.ops import pack_dsp, pack_mve, pack_triples
from baretorch.ops.arithmetic import requantize
from baretorch.ops.check import need
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of


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

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * inputs[1].shape[1]

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims) if dims[-1] == len(dims) - 1 else None


def need_accumulator(op: Op, inputs: Sequence[Tensor]) -> None:
    """int8 input and weight, one int32 bias and one int32 multiplier per output channel."""
    _, weight, bias, multiplier = inputs
    types = tuple(t.dtype for t in inputs)
    need(
        types == (DType.INT8, DType.INT8, DType.INT32, DType.INT32)
        and bias.shape == multiplier.shape == weight.shape[:1],
        op,
        "the inputs are not those of an int8 layer",
        inputs,
        "x int8, weight int8[out, ...], bias int32[out], multiplier int32[out]",
    )


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
    Kernel("bt_qlinear_ref", "qlinear/ref.c", _params, fits=_fits, pack=_pack),
)

"""lerp: between two tensors of one shape, in float and in int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Permuted, Quant, Shape, Signature, Tensor
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of
from baretorch.ops.int8.qbinary import sum_of
from baretorch.ops.int8.rules import StaysFloat, Walk
from baretorch.targets.features import DSP


@dataclass(frozen=True)
class Lerp(Op, name="lerp"):
    """a + weight * (b - a)."""

    weight: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        a, b = inputs
        need_float32(self, inputs)
        need(a.shape == b.shape, self, "the tensors differ in shape", inputs, "equal shapes")
        return (Signature(a.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.float64) for x in inputs)
        return ((a + self.weight * (b - a)).astype(np.float32),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


@dataclass(frozen=True)
class QLerp(Op, name="qlerp"):
    """a, b int8 -> clamp((a * a_factor + b * b_factor + offset) >> shift)."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        a, b = inputs
        need(a.dtype is b.dtype is DType.INT8 and a.shape == b.shape, self, "not int8", inputs, "int8 and int8")
        return (Signature(a.shape, DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        total = a * self.a_factor + b * self.b_factor + self.offset
        return (np.clip(total >> self.shift, -128, 127).astype(np.int8),)


def int8(walk: Walk, node: Node) -> None:
    """The sum of both, with scales that are as much smaller as their shares."""
    op = node.op
    assert isinstance(op, Lerp)
    a, b, y = (walk.scale(name) for name in (*node.inputs, *node.outputs))
    shares = zip((a, b), (1 - op.weight, op.weight), strict=True)
    made = sum_of(*(Quant((q.scale[0] * share,), q.zero_point) for q, share in shares), y)
    if made is None:
        raise StaysFloat("its output's scale is too fine for those of its inputs")
    walk.emit(node, QLerp(made.a_factor, made.b_factor, made.offset, made.shift), *map(walk.int8, node.inputs))


def _params(call: Call[Lerp]) -> Params:
    return Params("bt_lerp_f32", (("count", call.y.count), ("weight", call.op.weight)))


def _int8_params(call: Call[Any]) -> Params:
    own = fields_of(call.op, "a_factor", "b_factor", "offset", "shift")
    return Params("bt_qlerp", (("count", call.y.count), *own))


KERNELS: tuple[Kernel[Lerp], ...] = (Kernel("bt_lerp_f32_ref", "lerp/ref.c", _params, overlap=overlap.elementwise),)
INT8_KERNELS: tuple[Kernel[QLerp], ...] = (
    Kernel("bt_qlerp_dsp", "lerp/dsp.c", _int8_params, DSP, overlap=overlap.elementwise),
    Kernel("bt_qlerp_ref", "lerp/int8.c", _int8_params, overlap=overlap.elementwise),
)

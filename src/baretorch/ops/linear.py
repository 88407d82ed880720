"""linear: y = clamp(x W^T + b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.families import Limited
from baretorch.ops.helpers.kernel import (
    Call,
    Kernel,
    Packed,
    Params,
    bias_of,
    data_of,
    fields_of,
    has_constants,
    in_eights,
    nowhere,
)
from baretorch.ops.packing import half
from baretorch.targets.features import ANY_CPU, FPU, MVE, VECTORS, Needs


class RowByRow(Op, carried=slice(1), by_column=True):
    """x[..., in], weight[out, in], … -> [..., out]: an operator that multiplies the weight by each row of x."""

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        if axis == len(y.shape) - 1:
            return cut.channels_of(self, inputs, start, stop)
        return cut.from_first(self, inputs, axis, start, stop)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * inputs[1].shape[1]

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims) if dims[-1] == len(dims) - 1 else None


@dataclass(frozen=True)
class Linear(Limited, RowByRow, name="linear"):
    """x[..., in], weight[out, in], optional bias[out] -> [..., out], limited to [lo, hi]. With `half`, weights are
    rounded to float16 and stored as that."""

    lo: float = -inf
    hi: float = inf
    half: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, weight = inputs[:2]
        if len(weight.shape) != 2 or not x.shape or x.shape[-1] != weight.shape[1]:
            raise CompileError(
                "linear: the input's last dimension is not the weight's",
                have=", ".join(map(str, inputs)),
                need="x[..., in] and weight[out, in]",
            )
        return (Signature((*x.shape[:-1], weight.shape[0]), x.dtype),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        weight = half.round_to_half(inputs[1]) if self.half else inputs[1]
        y = inputs[0].astype(np.float64) @ weight.T.astype(np.float64)
        if len(inputs) > 2:
            y = y + inputs[2]
        return (np.clip(y, self.lo, self.hi).astype(np.float32),)

    def takes_affine(self) -> bool:
        return (self.lo, self.hi) == (-inf, inf) and not self.half  # halves are final


def _params(call: Call[Linear]) -> Params:
    out, in_ = call.inputs[1].shape
    batch = prod(call.x.shape[:-1])
    return Params("bt_linear_f32", (("batch", batch), ("in", in_), ("out", out), *fields_of(call.op, "lo", "hi")))


def _pack(call: Call[Linear]) -> tuple[Packed, ...]:
    return (Packed("weight", data_of(call.inputs, 1)), Packed("bias", bias_of(call)))


def _pack_eights(call: Call[Linear]) -> tuple[Packed, ...]:
    return (Packed("weight", in_eights(data_of(call.inputs, 1))), Packed("bias", bias_of(call)))


def _fits(call: Call[Linear]) -> bool:
    return call.x.dtype is DType.FLOAT32 and has_constants(call)


def _bands(weight: Array) -> tuple[Array, Array]:
    """Return for each row where the band begins that holds all numbers other than 0, and its length in fours."""
    in_ = weight.shape[1]
    some = weight != 0
    first = np.where(some.any(axis=1), some.argmax(axis=1), 0)
    behind = np.where(some.any(axis=1), in_ - some[:, ::-1].argmax(axis=1), 0)
    fours = -(-(behind - first) // 4)
    return np.minimum(first, np.maximum(in_ - 4 * fours, 0)), fours


def _pack_bands(call: Call[Linear]) -> tuple[Packed, ...]:
    weight = data_of(call.inputs, 1)
    first, fours = _bands(weight)
    rows = [row[a : a + 4 * n] for row, a, n in zip(weight, first, fours, strict=True)]
    bands = np.stack([first, fours], axis=1).astype(np.int16)
    return (Packed("weight", np.concatenate(rows)), Packed("bias", bias_of(call)), Packed("bands", bands))


def _fits_bands(call: Call[Linear]) -> bool:
    """Return whether most weights are 0, and every band can be read in fours."""
    if not _fits(call) or not 4 <= call.inputs[1].shape[1] < 1 << 15:
        return False
    weight = data_of(call.inputs, 1)
    first, fours = _bands(weight)
    inside = bool((first + 4 * fours <= weight.shape[1]).all())
    return inside and 0 < 16 * int(fours.sum()) <= weight.size


def _in_eights(variant: str, needs: Needs, rows: int = 2) -> Kernel[Linear]:
    """Return a kernel that computes eight outputs of `rows` rows together. The other outputs are sums in another order,
    so eights stay whole."""
    return Kernel(
        f"bt_linear_f32_{variant}",
        f"linear/{variant}.c",
        _params,
        needs,
        _fits,
        _pack_eights,
        overlap=overlap.rows(rows),
        splits=cut.rows_or_channels(8),
    )


_REF = Kernel(
    "bt_linear_f32_ref",
    "linear/ref.c",
    _params,
    fits=_fits,
    pack=_pack,
    overlap=overlap.rows(1),
    splits=cut.rows_or_channels(1),
)
_FLOAT: tuple[Kernel[Linear], ...] = (
    _REF.for_cpu("banded", ANY_CPU, fits=_fits_bands, pack=_pack_bands, splits=cut.rows),
    _in_eights("mve", MVE),
    _in_eights("fpu", FPU),
    replace(_in_eights("vectors", VECTORS, 4), splits=nowhere),  # because observers read whole layers
    _REF,
)
KERNELS: tuple[Kernel[Linear], ...] = (
    *map(half.for_float32, _FLOAT),
    half.make_half_in_eights(_in_eights("mve", MVE)),
    half.make_half_in_eights(_in_eights("fpu", FPU)),
    half.make_half(_REF),
)

"""Elementwise operators of integer networks: numbers without scales, as QuantLib exports and Deeploy reads them.

An int8 tensor holds numbers less a `zero`: 0 for signed ones, -128 for those from 0 to 255. Numbers that bytes cannot
hold are int32. See docs/arithmetic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Signature, Tensor
from baretorch.ops.elementwise import LOOPS, broadcast, loop_fields, loops_of
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of, has_constants
from baretorch.ops.int8.lookup import ByteTable, pack_table

LARGEST_SHIFT = 31


@dataclass(frozen=True)
class RequantShift(Pointwise, name="requant_shift"):
    """x, factor, offset int32 -> clamp(zero + ((x * factor + offset) >> shift), lo, hi) as int8, with NumPy's
    broadcasting; half up if `half`, else down."""

    shift: int
    zero: int
    lo: int = -128
    hi: int = 127
    half: bool = True

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        right = all(t.dtype is DType.INT32 for t in inputs) and 0 <= self.shift <= LARGEST_SHIFT
        need(right, self, "the inputs are not int32", inputs, f"x, factor and offset int32, shift 0 to {LARGEST_SHIFT}")
        return (Signature(broadcast(self, inputs), DType.INT8),)

    @property
    def round(self) -> int:
        """Return the number that is added before the shift."""
        return (1 << self.shift) >> 1 if self.half else 0

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, factor, offset = (i.astype(np.int64) for i in inputs)
        y = (x * factor + offset + self.round) >> self.shift
        return (np.clip(y + self.zero, self.lo, self.hi).astype(np.int8),)


@dataclass(frozen=True)
class IntTable(ByteTable, name="int_table", carried=slice(1), entries=DType.INT32):
    """x int8, table int32[256] -> table[x + 128]."""


@dataclass(frozen=True)
class IntDivide(Pointwise, name="int_divide"):
    """a, b int32 -> a * factor * slope / (b * slope + offset), half away from 0, limited to 32 bits. The divisor is
    above 0 and the numerator below 2^62."""

    factor: int
    slope: int
    offset: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(all(t.dtype is DType.INT32 for t in inputs), self, "the inputs are not int32", inputs, "int32 and int32")
        return (Signature(broadcast(self, inputs), DType.INT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        numerator, divisor = a * self.factor * self.slope, np.maximum(b * self.slope + self.offset, 1)
        y = np.sign(numerator) * ((np.abs(numerator) + (divisor >> 1)) // divisor)
        return (np.clip(y, -(1 << 31), (1 << 31) - 1).astype(np.int32),)


def _requant_params(call: Call[RequantShift]) -> Params:
    return Params("bt_requant_shift", (*loop_fields(call), *fields_of(call.op, "shift", "round", "zero", "lo", "hi")))


def _divide_params(call: Call[IntDivide]) -> Params:
    return Params("bt_int_divide", (*loop_fields(call), *fields_of(call.op, "factor", "slope", "offset")))


def _few_loops(call: Call[Any]) -> bool:
    return len(loops_of(call)) <= LOOPS


REQUANT_SHIFT: tuple[Kernel[RequantShift], ...] = (
    Kernel(
        "bt_requant_shift_ref",
        "integer/ref.c",
        _requant_params,
        fits=_few_loops,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    ),
)
INT_TABLE: tuple[Kernel[IntTable], ...] = (
    Kernel(
        "bt_int_table_ref",
        "integer/ref.c",
        lambda call: Params("bt_int_table", (("count", call.x.count),)),
        fits=has_constants,
        pack=pack_table,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    ),
)
INT_DIVIDE: tuple[Kernel[IntDivide], ...] = (
    Kernel(
        "bt_int_divide_ref",
        "integer/ref.c",
        _divide_params,
        fits=_few_loops,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    ),
)

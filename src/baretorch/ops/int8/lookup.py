"""lookup: any int8 function of one int8 value, by a table of 256."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, has_constants
from baretorch.targets.features import MVE


@dataclass(frozen=True)
class ByteTable(Op):
    """x int8, table[256] -> table[x + 128]. `entries` is the type of the table."""

    entries: ClassVar[DType]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, table = inputs
        valid = x.dtype is DType.INT8 and table.dtype is self.entries and table.shape == (256,)
        types = f"x int8[...] and table {self.entries.label}[256]"
        need(valid, self, "the inputs are not int8 values and a table", inputs, types)
        return (Signature(x.shape, self.entries),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, table = inputs
        return (table[x.astype(np.int64) + 128],)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.from_first(self, inputs, axis, start, stop)


@dataclass(frozen=True)
class Lookup(ByteTable, name="lookup", carried=slice(1), entries=DType.INT8):
    """x int8, table int8[256] -> table[x + 128]."""


def _params(call: Call[Lookup]) -> Params:
    return Params("bt_lookup", (("count", call.x.count),))


def pack_table(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the table in the order of the byte's bits, so that the byte is the index."""
    return (Packed("table", np.roll(data_of(call.inputs, 1), 128)),)


_REF = Kernel[Lookup](
    "bt_lookup_ref",
    "lookup/ref.c",
    _params,
    fits=has_constants,
    pack=pack_table,
    overlap=overlap.elementwise,
    splits=cut.outermost,
)
KERNELS = (_REF.for_cpu("mve", MVE), _REF)

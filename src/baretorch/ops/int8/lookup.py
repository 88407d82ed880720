"""lookup: any int8 function of one int8 value, by a table of 256."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, has_constants
from baretorch.targets.features import MVE


@dataclass(frozen=True)
class Lookup(Op, name="lookup", carried=slice(1)):
    """x int8, table int8[256] -> table[x + 128]."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, table = inputs
        valid = x.dtype is table.dtype is DType.INT8 and table.shape == (256,)
        need(valid, self, "the inputs are not int8 values and a table", inputs, "x int8[...] and table int8[256]")
        return (Signature(x.shape, DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, table = inputs
        return (table[x.astype(np.int64) + 128],)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.from_first(self, inputs, axis, start, stop)


def _params(call: Call[Lookup]) -> Params:
    return Params("bt_lookup", (("count", call.x.count),))


def _pack(call: Call[Lookup]) -> tuple[Packed, ...]:
    """Return the table in the order of the byte's bits, so that the byte is the index."""
    return (Packed("table", np.roll(data_of(call.inputs, 1), 128)),)


_REF = Kernel[Lookup](
    "bt_lookup_ref",
    "lookup/ref.c",
    _params,
    fits=has_constants,
    pack=_pack,
    overlap=overlap.elementwise,
    splits=cut.outermost,
)
KERNELS = (_REF.for_cpu("mve", MVE), _REF)

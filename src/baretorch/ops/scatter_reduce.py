"""scatter_reduce: what is scattered is multiplied with what is there, or the greater or lesser of the two stays.

Sums are `scatter` that accumulates, and means are made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, DType, Signature, Tensor
from baretorch.ops import index
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.move import Change, Overwrite

TYPES = {DType.FLOAT32: "f32", DType.INT32: "s32"}
KINDS: dict[str, np.ufunc] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@dataclass(frozen=True)
class ScatterReduce(index.ByIndex, Overwrite, name="scatter_reduce"):
    """x, index, source -> x, but y[.., index[.., i, ..], ..] = f(itself, source[.., i, ..]) along one axis, where f is
    prod, amax or amin."""

    axis: int
    kind: str

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        if self.kind not in KINDS:
            raise InternalError(f"scatter_reduce by {self.kind}")
        need(x.dtype in TYPES, self, f"{x.dtype.label} is not supported", inputs, "float32 or int32")
        return index.Scatter(self.axis).infer(inputs)

    def change(self) -> Change:
        return ReduceAlong(self.axis, self.kind)


@dataclass(frozen=True)
class ReduceAlong(Change, name="reduce_along"):
    """The change that scatter_reduce makes: index, source -> y."""

    axis: int
    kind: str

    def write(self, y: Array, *inputs: Array) -> None:
        at, source = inputs
        places: list[Array] = list(np.indices(at.shape, sparse=True))
        places[self.axis] = index.inside(at, y.shape[self.axis])
        with np.errstate(all="ignore"):
            KINDS[self.kind].at(y, tuple(places), source)


def _kernel(kind: str, dtype: DType) -> Kernel[Any]:
    def fits(call: Call[ReduceAlong]) -> bool:
        return call.op.kind == kind and call.y.dtype is dtype

    return Kernel(
        f"bt_scatter_{kind}_{TYPES[dtype]}_ref",
        "index/ref.c",
        lambda call: index.elements(call.op.axis, call.y, call.inputs[0])[1],
        fits=fits,
    )


Kernels = tuple[Kernel[Any], ...]
SCATTER_REDUCE: Kernels = ()  # a copy and a reduce_along
REDUCE_ALONG: Kernels = tuple(_kernel(kind, dtype) for kind in KINDS for dtype in TYPES)

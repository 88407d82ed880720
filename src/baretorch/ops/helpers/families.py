"""Base classes of operators that share methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baretorch.ir.graph import DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut


class Pointwise(Op):
    """An operator whose outputs depend on the inputs at their own place only, with NumPy's broadcasting."""

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.at_the_same_place(self, inputs, y, axis, start, stop)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


class AlongAxis(Op):
    """An operator that works along its `axis`, and keeps that dimension."""

    axis: int

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        axis: dict[str, Any] = {"axis": dims[self.axis]}
        return Permuted(replace(self, **axis), dims)


class Quantized(Op):
    """An integer operator with the shapes and products of a float operator, its `geometry`."""

    @property
    def geometry(self) -> Op:
        """Return the float operator of the same shape."""
        raise NotImplementedError

    def infer_as_float(self, inputs: Sequence[Tensor], dtype: DType) -> tuple[Signature, ...]:
        """Return what the float operator infers for these inputs, with this type."""
        (signature,) = self.geometry.infer([replace(t, dtype=DType.FLOAT32, data=None) for t in inputs])
        return (replace(signature, dtype=dtype),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return self.geometry.macs(inputs, outputs)


class Limited(Op):
    """An operator whose fields `lo` and `hi` limit its output."""

    lo: float
    hi: float

    def clamp(self, lo: float, hi: float) -> Op:
        """Return the op with both limits: its own, then these. As in PyTorch's clamp, the upper limit wins."""
        both: dict[str, Any] = {"lo": min(max(self.lo, lo), hi), "hi": min(max(self.hi, lo), hi)}
        return replace(self, **both)

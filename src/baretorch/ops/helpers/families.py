"""Base classes of operators that share methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baretorch.ir.graph import Op, Permuted, Piece, Shape, Tensor
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


class Limited(Op):
    """An operator whose fields `lo` and `hi` limit its output."""

    lo: float
    hi: float

    def clamp(self, lo: float, hi: float) -> Op:
        """Return the op with both limits: its own, then these. As in PyTorch's clamp, the upper limit wins."""
        both: dict[str, Any] = {"lo": min(max(self.lo, lo), hi), "hi": min(max(self.hi, lo), hi)}
        return replace(self, **both)

"""The limits [lo, hi] of an operator's output: what ReLU and clamp become."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Op


class Limited(Op):
    """An operator whose fields `lo` and `hi` limit its output."""

    lo: float
    hi: float

    def clamped(self, lo: float, hi: float) -> Op:
        """Return the op with both limits, these after its own. As in PyTorch's clamp, the upper limit wins."""
        both = {"lo": min(max(self.lo, lo), hi), "hi": min(max(self.hi, lo), hi)}
        return replace(self, **both)

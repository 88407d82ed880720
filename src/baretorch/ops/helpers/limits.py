"""The limits [lo, hi] of an operator's output: what ReLU and clamp become."""

from __future__ import annotations


def both(first: tuple[float, float], then: tuple[float, float]) -> tuple[float, float]:
    """The limits that do both: clamp(clamp(v, first), then). PyTorch's clamp lets the upper limit win."""
    lo, hi = (min(max(limit, then[0]), then[1]) for limit in first)
    return lo, hi

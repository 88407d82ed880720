"""The order of a tensor's dimensions in memory, as a `.pte` states it."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.frontends.pte.schema import TensorValue
from baretorch.ir.graph import Shape


def memory_order(shape: Shape, order: Sequence[int]) -> tuple[int, ...]:
    """Return `order` in its usual form. Dimensions of size 1 can be anywhere, so contiguous is preferred, then channels
    last."""
    contiguous = tuple(range(len(shape)))
    channels_last = (0, *contiguous[2:], 1) if len(shape) > 2 else contiguous
    for usual in (contiguous, channels_last):
        if [d for d in usual if shape[d] != 1] == [d for d in order if shape[d] != 1]:
            return usual
    return tuple(order)


def order_of(t: TensorValue) -> tuple[int, ...]:
    return memory_order(t.shape, t.order)


def is_contiguous(t: TensorValue) -> bool:
    return order_of(t) == tuple(range(len(t.shape)))


def same_layout(a: TensorValue, b: TensorValue) -> bool:
    return a.shape == b.shape and memory_order(a.shape, a.order) == memory_order(b.shape, b.order)

"""Give every buffer an offset so that no two that are alive together overlap.

Buffers are placed one after the other at the lowest free offset; the order decides the result. Two orders are
tried, largest first and longest-lived first, and the smaller arena wins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from baretorch.plan.types import Buffer

ALIGNMENT = 4


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The largest sum of live bytes over all steps: no arena can be smaller."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.first] = change.get(b.first, 0) + aligned(b.size)
        change[b.last + 1] = change.get(b.last + 1, 0) - aligned(b.size)
    live = peak = 0
    for time in sorted(change):
        live += change[time]
        peak = max(peak, live)
    return peak


def place(buffers: Sequence[Buffer], bank: str, lowest: Collection[str] = ()) -> tuple[list[Buffer], int]:
    """The buffers with offsets, in their old order, and the size of the arena. Those named in `lowest` come first, by
    name: state lies at the same place whatever method of a model runs."""
    pinned = sorted((b for b in buffers if b.name in lowest), key=lambda b: b.name)
    others = [b for b in buffers if b.name not in lowest]
    orders: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
        lambda b: (-b.size, b.first),
        lambda b: (b.first - b.last, -b.size, b.first),
    )
    bound = lower_bound(buffers)
    best: list[Buffer] | None = None
    best_size = 0
    for key in orders:
        placed = _place_in_order([*pinned, *sorted(others, key=key)], bank)
        size = max((aligned(b.end) for b in placed.values()), default=0)
        if best is None or size < best_size:
            best, best_size = [placed[b.name] for b in buffers], size
        if best_size == bound:
            break
    assert best is not None
    return best, best_size


def _place_in_order(buffers: Sequence[Buffer], bank: str) -> dict[str, Buffer]:
    """First fit. Buffers are filed under the steps at which they live, so neighbours are found without looking
    at all others."""
    at: dict[int, list[Buffer]] = {}
    placed: dict[str, Buffer] = {}
    for b in buffers:
        span = range(b.first, b.last + 1)
        neighbours = {n.name: n for step in span for n in at.get(step, ())}
        offset = 0
        for n in sorted(neighbours.values(), key=lambda n: n.offset):
            if offset + b.size <= n.offset:
                break
            offset = max(offset, aligned(n.end))
        done = replace(b, bank=bank, offset=offset)
        placed[b.name] = done
        for step in span:
            at.setdefault(step, []).append(done)
    return placed

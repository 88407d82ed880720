"""Give every buffer an offset so that no two share a byte that one of them still needs.

Items are placed one after the other at the lowest free offset, so the order decides the result. Several orders are
tried, and the best is improved by moving the topmost items to the front. Where that does not reach the lower bound,
`search` enumerates packings of the items that make the problem hard, up to a limit.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.plan.memory.packing import Offsets, Packing, grain, make_packing, round_up
from baretorch.plan.memory.search import search_packing
from baretorch.plan.types import Buffer, Overlap

MANY = 50  # neighbours of an item, from which on arrays are faster than lists
WORK = 6_000  # items that `improve` places before it gives up


def lower_bound(buffers: Sequence[Buffer], overlaps: Sequence[Overlap] = ()) -> int:
    """Return a size below which no arena is possible."""
    return make_packing(buffers, overlaps).bound()


def place_buffers(
    buffers: Sequence[Buffer], bank: str, lowest: Collection[str] = (), overlaps: Sequence[Overlap] = ()
) -> tuple[list[Buffer], int, bool]:
    """Return the buffers with offsets, in their old order, the size of the arena, and whether that is the minimum.
    Buffers in `lowest`, which are always alive, come first, by name: state is at the same place whatever method of a
    model runs."""
    offsets: dict[str, int] = {}
    base, to = 0, grain(buffers)
    for b in sorted((b for b in buffers if b.name in lowest), key=lambda b: b.name):
        offsets[b.name] = base
        base += round_up(b.size, to)
    others = [b for b in buffers if b.name not in lowest and b.size]
    problem = make_packing(others, overlaps)
    found, optimal = pack(problem)
    forward = [replace(o, behind=None) for o in overlaps]
    if forward != list(overlaps):  # going back takes some instructions, so only if that saves bytes
        plain, _ = pack(make_packing(others, forward))
        found = plain if problem.height(plain) <= problem.height(found) else found
    offsets |= {b.name: base + int(at) for b, at in zip(others, found, strict=True)}
    placed = [replace(b, bank=bank, offset=offsets.get(b.name, 0)) for b in buffers]
    return placed, base + problem.height(found), optimal


def pack(problem: Packing) -> tuple[Offsets, bool]:
    """Return offsets for the items, and whether no packing is lower."""
    bound = problem.bound()
    best = _best_order(problem, bound)
    if problem.height(best) == bound:
        return best, True
    easy, core = peel(problem, bound)
    part = problem.part(core)
    packed, proved = search_packing(part, improve(part, bound), bound)
    whole = first_fit(problem, easy[::-1], dict(zip(core.tolist(), packed.tolist(), strict=True)))
    if problem.height(whole) < problem.height(best):
        best = whole
    return best, proved and problem.height(best) == part.height(packed)


def first_fit(problem: Packing, order: Iterable[int], known: Mapping[int, int] | None = None) -> Offsets:
    """Place each item in turn at the lowest free offset, around items whose offsets are known."""
    size: list[int] = problem.size.tolist()
    offsets = [-1] * len(size)
    placed = np.full(len(size), -1, np.int64)  # the same, for items with many neighbours
    for i, at in (known or {}).items():
        offsets[i] = placed[i] = at
    for i in order:
        taken = []
        for pair in problem.partners.get(i, ()):
            if i == pair.reads and (at := offsets[pair.writes]) >= 0:
                taken += [(at + low, at + high) for low, high in pair.between]
            elif i == pair.writes and (at := offsets[pair.reads]) >= 0:
                taken += [(at - high, at - low) for low, high in pair.between]
        many = problem.neighbours(i)
        if len(many) > MANY:
            offsets[i] = _lowest_of_many(placed[many], problem.size[many], size[i], taken)
        else:
            taken += [(offsets[j] - size[i], offsets[j] + size[j]) for j in problem.near(i) if offsets[j] >= 0]
            offsets[i] = _lowest(taken)
        placed[i] = offsets[i]
    return placed


def _lowest(taken: list[tuple[int, int]]) -> int:
    """Return the lowest offset that is between none of these pairs."""
    at = 0
    for low, high in sorted(taken):
        if at <= low:
            break
        at = max(at, high)
    return at


def _lowest_of_many(offsets: Offsets, sizes: Offsets, size: int, taken: list[tuple[int, int]]) -> int:
    """Return the lowest offset for an item of `size` bytes, clear of its placed neighbours and of `taken`. Arrays make
    it fast."""
    there = offsets >= 0
    low = np.concatenate([offsets[there] - size, [pair[0] for pair in taken]]).astype(np.int64)
    high = np.concatenate([(offsets + sizes)[there], [pair[1] for pair in taken]]).astype(np.int64)
    order = np.argsort(low)
    reached = np.maximum.accumulate(np.concatenate([[0], high[order]])).astype(np.int64)
    free = np.flatnonzero(reached[:-1] <= low[order])
    return int(reached[free[0]] if len(free) else reached[-1])


def _best_order(problem: Packing, bound: int) -> Offsets:
    """Return the offsets from the best of some orders."""
    size, first, last = problem.size, problem.first, problem.last
    span = last - first + 1
    alone = np.array([i not in problem.partners for i in range(len(problem))], np.int64)
    orders = (
        (first, -size),
        (first, -size, -span),
        (-size, -last),
        (-size, first),
        (first, -size * span),
        (-size, -_crowd(problem)),
        (-size, -last, alone),  # outputs are below their inputs, so the last ones are the lowest
    )
    best = first_fit(problem, range(len(problem)))
    for keys in orders:
        if problem.height(best) == bound:
            break
        best = min(best, first_fit(problem, np.lexsort(keys).tolist()), key=problem.height)
    return best


def _crowd(problem: Packing) -> Offsets:
    """Return for each item the most bytes that are alive at a half step of its life."""
    times, load = problem.load()
    starts, stops = np.searchsorted(times, problem.first), np.searchsorted(times, problem.last + 1)
    return np.array([load[a:b].max() for a, b in zip(starts, stops, strict=True)], np.int64)


def peel(problem: Packing, capacity: int) -> tuple[list[int], Offsets]:
    """Split off items that have room below `capacity` wherever the others are placed, each among those after it. k
    neighbours of S bytes together leave at most k + 1 gaps, so one is at least (capacity - S) / (k + 1) long."""
    size: list[int] = problem.size.tolist()
    rest = set(range(len(problem)))
    easy: list[int] = []
    waiting = sorted(rest)
    while waiting:
        again: set[int] = set()
        for i in waiting:
            partners = (p.reads + p.writes - i for p in problem.partners.get(i, ()))
            others = [j for j in (*problem.near(i), *partners) if j in rest]
            if i in rest and capacity - sum(size[j] for j in others) >= (len(others) + 1) * size[i]:
                rest.remove(i)
                easy.append(i)
                again.update(others)
        waiting = sorted(again & rest)
    return easy, np.array(sorted(rest), np.int64)


def improve(problem: Packing, bound: int) -> Offsets:
    """Return the offsets from the best of many orders: a topmost item moves to an earlier place, at random."""
    lot = random.Random(0)
    best: list[int] = np.lexsort((problem.first, -problem.size)).tolist()
    offsets = first_fit(problem, best)
    for _ in range(WORK // max(len(problem), 1)):
        height = problem.height(offsets)
        if height == bound:
            break
        top = lot.choice(np.flatnonzero(offsets + problem.size == height).tolist())
        order = [i for i in best if i != top]
        order.insert(lot.randrange(best.index(top) + 1), top)
        if lot.random() < 0.5:
            a, b = lot.randrange(len(order)), lot.randrange(len(order))
            order[a], order[b] = order[b], order[a]
        tried = first_fit(problem, order)
        if problem.height(tried) <= height:
            best, offsets = order, tried
    return offsets

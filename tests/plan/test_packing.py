"""Offsets against brute force, and against memory that shows who wrote each byte last."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest

from baretorch.ops.helpers.kernel import Lattice
from baretorch.plan.memory.offsets import first_fit, lower_bound, pack, place_buffers
from baretorch.plan.memory.packing import make_packing
from baretorch.plan.types import Buffer, Overlap


@dataclass(frozen=True)
class Run:
    """Steps that each make one buffer from some others, with the distance to those that die there."""

    buffers: list[Buffer]
    reads: list[list[int]]  # of step i, which makes the buffer `inputs + i`
    overlaps: list[Overlap]
    inputs: int


def random_run(seed: int, steps: int, size: int = 40, in_steps: bool = False) -> Run:
    """Return a random problem. With `in_steps`, some overlaps have distances that are multiples of some bytes."""
    lot = random.Random(seed)
    inputs = lot.randint(1, 3)
    reads = [
        sorted({max(0, inputs + i - 1 - int(lot.expovariate(0.7))) for _ in range(lot.randint(1, 3))})
        for i in range(steps)
    ]
    sizes = [lot.randint(1, size) * lot.choice([1, 1, 4, 16]) for _ in range(inputs + steps)]
    last = {n: i for i, some in enumerate(reads) for n in some}
    buffers = [
        Buffer(f"b{n}", s, max(-1, n - inputs), last.get(n, max(-1, n - inputs) if n % 7 else steps))
        for n, s in enumerate(sizes)
    ]
    overlaps = [
        Overlap(f"b{n}", f"b{inputs + i}", d, lot.choice([None, None, 0, lot.randint(0, 64)]))
        for i, some in enumerate(reads)
        for n in some
        if last[n] == i and lot.random() < 0.7 and (d := lot.choice([0, lot.randint(0, 64)])) < sizes[inputs + i]
    ]
    if in_steps:
        overlaps = [
            replace(o, distance=o.distance + lot.randint(0, 64), nearer=Lattice(o.distance, lot.randint(1, 24)))
            for o in overlaps
            if o.distance is not None
        ]
    return Run(buffers, reads, overlaps, inputs)


def simulate(run: Run, placed: list[Buffer], arena: int) -> None:
    """Every byte bears the number of the buffer it was last written for. A step reads its inputs when it has already
    written all that their distances let it write."""
    memory = np.full(arena, -1)
    overlaps = {(o.reads, o.writes): o for o in run.overlaps}
    for n in range(run.inputs):
        memory[placed[n].offset : placed[n].end] = n
    for i, some in enumerate(run.reads):
        y = placed[run.inputs + i]
        for n in some:
            x = placed[n]
            ahead = x.offset - y.offset
            o = overlaps.get((x.name, y.name))
            forward = o is not None and o.distance is not None and ahead >= o.distance
            forward |= o is not None and o.nearer is not None and o.nearer.holds(ahead)
            back = o is not None and o.behind is not None and -ahead >= o.behind
            mine = memory.copy()
            if not forward and not back:
                mine[y.offset : y.end] = run.inputs + i
            assert (mine[x.offset : x.end] == n).all(), f"step {i} does not find {x.name}"
        memory[y.offset : y.end] = run.inputs + i
    for n, b in enumerate(placed):
        if b.last == len(run.reads):
            assert (memory[b.offset : b.end] == n).all(), f"the output {b.name} is gone"


@pytest.mark.parametrize("seed", range(20))
def test_no_live_byte_is_overwritten(seed: int) -> None:
    for k in range(100):
        run = random_run(100 * seed + k, steps=1 + (seed + k) % 25)
        placed, arena, optimal = place_buffers(run.buffers, "ram", overlaps=run.overlaps)
        bound = lower_bound(run.buffers, run.overlaps)
        assert bound <= arena and (optimal or arena > bound)
        simulate(run, placed, arena)


@pytest.mark.parametrize("seed", range(8))
def test_overlaps_in_steps_save_bytes(seed: int) -> None:
    """And no live byte is overwritten."""
    saved = 0
    for k in range(50):
        run = random_run(100 * seed + k, steps=1 + (seed + k) % 25, in_steps=True)
        placed, arena, _ = place_buffers(run.buffers, "ram", overlaps=run.overlaps)
        assert lower_bound(run.buffers, run.overlaps) <= arena
        simulate(run, placed, arena)
        plain = [replace(o, nearer=None) for o in run.overlaps]
        saved += place_buffers(run.buffers, "ram", overlaps=plain)[1] - arena
    assert saved > 0


@pytest.mark.parametrize("seed", range(60))
def test_a_search_knows_of_steps(seed: int) -> None:
    """It is not worse than the best order of first fit, and proves nothing but by the bound."""
    run = random_run(seed, steps=3, in_steps=True)
    problem = make_packing(run.buffers, run.overlaps)
    least = min(problem.height(first_fit(problem, order)) for order in permutations(range(len(problem))))
    offsets, optimal = pack(problem)
    assert problem.height(offsets) <= least
    plain = all(pair.near == pair.distance for pair in problem.pairs)
    assert plain or not optimal or problem.height(offsets) == problem.bound()


def test_a_packing_that_breaks_the_rule_is_found() -> None:
    run = Run([Buffer("b0", 8, -1, 0), Buffer("b1", 8, 0, 1)], [[0]], [Overlap("b0", "b1", 4)], 1)
    good = [Buffer("b0", 8, -1, 0, "ram", 4), Buffer("b1", 8, 0, 1, "ram", 0)]
    simulate(run, good, 12)
    with pytest.raises(AssertionError, match="does not find b0"):
        simulate(run, [Buffer("b0", 8, -1, 0, "ram", 0), Buffer("b1", 8, 0, 1, "ram", 0)], 12)


@pytest.mark.parametrize("seed", range(150))
def test_small_problems_are_solved(seed: int) -> None:
    """Some order of first fit gives the least arena, so trying all of them finds it."""
    run = random_run(seed, steps=3 + seed % 2)
    problem = make_packing(run.buffers, run.overlaps)
    if len(problem) > 6:
        run = random_run(seed + 1000, steps=3)
        problem = make_packing(run.buffers, run.overlaps)
    least = min(problem.height(first_fit(problem, order)) for order in permutations(range(len(problem))))
    offsets, optimal = pack(problem)
    assert (problem.height(offsets), optimal) == (least, True)


def test_a_bound_that_no_packing_reaches_is_known() -> None:
    """Five buffers in a ring of times: 4 bytes alive at a time but no place for 8 at once; searched to the end."""
    rows = [(8, 0, 1), (4, 1, 2), (8, 2, 3), (4, 3, 4), (4, 0, 0), (4, 4, 4), (4, 1, 1), (4, 2, 2), (8, 4, 5)]
    buffers = [Buffer(f"b{i}", *row) for i, row in enumerate(rows)]
    placed, arena, optimal = place_buffers(buffers, "ram")
    assert optimal and arena >= lower_bound(buffers)
    assert max(b.end for b in placed) == arena


def test_the_same_buffers_give_the_same_offsets() -> None:
    run = random_run(5, steps=60)
    assert place_buffers(run.buffers, "ram", overlaps=run.overlaps) == place_buffers(
        run.buffers, "ram", overlaps=run.overlaps
    )


def test_ten_thousand_buffers_take_seconds() -> None:
    run = random_run(1, steps=10_000)
    start = time.process_time()
    placed, arena, _ = place_buffers(run.buffers, "ram", overlaps=run.overlaps)
    assert time.process_time() - start < 10
    assert arena <= 1.1 * lower_bound(run.buffers, run.overlaps)
    simulate(run, placed, arena)

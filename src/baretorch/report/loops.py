"""The inner loops of executed code: where a branch goes back, and control can come to that branch again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from baretorch.emulators.types import Block
from baretorch.report.cycles import Listing
from baretorch.targets.kinds import Kind


@dataclass(frozen=True)
class Loop:
    """An inner loop: code from `start` to `end`, closed by a branch back. Functions that it calls are not counted."""

    start: int
    end: int
    passes: int
    instructions: int

    @property
    def per_pass(self) -> float:
        return self.instructions / self.passes


def find_loops(blocks: Sequence[Block], listing: Listing) -> tuple[Loop, ...]:
    """Loops without a loop inside, hottest first."""
    counts = Counter[int]()
    for block in blocks:
        for i in listing.block(block):
            counts[i.address] += block.executed
    closed = Counter[range]()
    for span, passes in _closed(blocks, listing):
        closed[span] += passes
    inner = [a for a in closed if not any(a != b and a.start <= b.start and b.stop <= a.stop for b in closed)]
    loops = (
        Loop(span.start, span.stop, closed[span], sum(n for at, n in counts.items() if at in span)) for span in inner
    )
    return tuple(sorted(loops, key=lambda loop: -loop.instructions))


def _closed(blocks: Sequence[Block], listing: Listing) -> Iterator[tuple[range, int]]:
    """The code of each loop, and how often its last instruction was executed."""
    next_of: dict[int, set[int]] = {}  # block -> blocks that may follow in the same function
    back: list[tuple[Block, range]] = []
    for block in blocks:
        *_, last = listing.block(block)
        end = last.address + last.size
        follows = next_of.setdefault(block.address, set())
        if block.taken < block.executed or last.work.kind is Kind.CALL:
            follows.add(end)
        if block.taken and last.target is not None:
            follows.add(last.target)
            if last.target <= last.address:
                back.append((block, range(last.target, end)))
    for block, span in back:
        if block.address in _reached(span, next_of):  # else it jumps to code that happens to lie before
            yield span, block.executed


def _reached(span: range, next_of: Mapping[int, set[int]]) -> set[int]:
    """Blocks that control can come to from the first of `span` without leaving it."""
    found: set[int] = set()
    waiting = [span.start]
    while waiting:
        address = waiting.pop()
        if address in span and address not in found:
            found.add(address)
            waiting.extend(next_of.get(address, ()))
    return found

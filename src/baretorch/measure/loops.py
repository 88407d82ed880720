"""Find the inner loops of executed code: a branch jumps back, and control can reach that branch again."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baretorch.firmware.types import Image
from baretorch.machines.types import Block
from baretorch.measure.cycles import Listing
from baretorch.targets.cycles import CALLS

_CODE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$")  # a line of objdump


@dataclass(frozen=True)
class InnerLoop:
    """An inner loop: code from `start` to `end`, closed by a branch back. Functions that it calls are not counted."""

    start: int
    end: int
    passes: int
    instructions: int

    @property
    def per_pass(self) -> float:
        return self.instructions / self.passes


def find_loops(blocks: Sequence[Block], listing: Listing) -> tuple[InnerLoop, ...]:
    """Return the loops that contain no other loop, hottest first."""
    counts = Counter[int]()
    for block in blocks:
        for i in listing.block(block):
            counts[i.address] += block.executed
    closed = _find_closed(blocks, listing)
    inner = {
        span: branch
        for span, branch in closed.items()
        if not any(span != other and span.start <= other.start and other.stop <= span.stop for other in closed)
    }
    loops = (
        InnerLoop(span.start, span.stop, counts[branch], sum(n for at, n in counts.items() if at in span))
        for span, branch in inner.items()
    )
    return tuple(sorted(loops, key=lambda loop: -loop.instructions))


def _find_closed(blocks: Sequence[Block], listing: Listing) -> dict[range, int]:
    """Return the code of each loop, and the address of the branch that closes it."""
    next_of: dict[int, set[int]] = {}  # block -> blocks that may follow in the same function
    back: dict[range, int] = {}
    ends: dict[int, set[int]] = {}  # branch -> the blocks that end with it
    for block in blocks:
        *_, last = listing.block(block)
        end = last.address + last.size
        follows = next_of.setdefault(block.address, set())
        if block.taken < block.executed or last.work.kind in CALLS:
            follows.add(end)
        if block.taken and last.target is not None:
            follows.add(last.target)
            if last.target <= last.address:
                back[range(last.target, end)] = last.address
                ends.setdefault(last.address, set()).add(block.address)
    # The other branches back jump to code that is not part of a loop.
    return {span: branch for span, branch in back.items() if ends[branch] & _reach(span, next_of)}


def _reach(span: range, next_of: Mapping[int, set[int]]) -> set[int]:
    """Return the blocks that control can reach from the first one of `span` without leaving it."""
    found: set[int] = set()
    waiting = [span.start]
    while waiting:
        address = waiting.pop()
        if address in span and address not in found:
            found.add(address)
            waiting.extend(next_of.get(address, ()))
    return found


def disassembly(image: Image, loop: InnerLoop) -> list[str]:
    """Return the instructions of a loop as text, from the objdump of the CPU's GNU toolchain."""
    program = shutil.which(f"{image.board.chip.cpu.gcc_prefix}objdump")
    if program is None:
        return [f"  {loop.start:#x}–{loop.end:#x}: to see the instructions, install the board's GNU toolchain"]
    command = [program, "-d", f"--start-address={loop.start}", f"--stop-address={loop.end}", str(image.elf)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (_CODE.match(line) for line in text.splitlines())
    return [f"  {m[1]:>8}  {m[2]:<10} {m[3].expandtabs(10)}" for m in found if m is not None]

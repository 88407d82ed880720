"""Executed blocks -> clock cycles, estimated from the core's table, with the range that the table leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from baretorch.emulators.types import Block
from baretorch.firmware import riscv, riscv_work, thumb, thumb_work
from baretorch.firmware.elf import ARM, Elf, read_elf
from baretorch.firmware.types import Image
from baretorch.report.numbers import figure, frequency
from baretorch.targets.cycles import FRIENDS, TIMINGS, Timing
from baretorch.targets.kinds import Kind, Work


@dataclass(frozen=True)
class Cycles:
    """As expected, at best and at worst."""

    expected: float = 0
    best: float = 0
    worst: float = 0

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.expected + other.expected, self.best + other.best, self.worst + other.worst)

    def times(self, n: float) -> Cycles:
        return Cycles(self.expected * n, self.best * n, self.worst * n)


@dataclass(frozen=True)
class Decoded:
    """An instruction of the image: where, how long, what, and where it may jump to."""

    address: int
    size: int
    work: Work
    target: int | None


@dataclass(frozen=True)
class Listing:
    """The instructions of an image, decoded where blocks were executed."""

    elf: Elf

    @cached_property
    def _decoded(self) -> dict[int, Decoded]:
        return {}

    def block(self, block: Block) -> Iterator[Decoded]:
        address = block.address
        for _ in range(block.instructions):
            found = self._decoded.get(address)
            if found is None:
                found = self._decoded[address] = self._decode(address)
            yield found
            address += found.size

    def _decode(self, address: int) -> Decoded:
        short = self.elf.bytes_at(address, 2)
        if self.elf.machine == ARM:
            code = self.elf.bytes_at(address, 4) if short[1] >> 3 >= 0b11101 else short
            t = next(thumb.instructions(code, address))
            return Decoded(address, len(code), thumb_work.work_of(t), thumb_work.target_of(t))
        code = self.elf.bytes_at(address, 4) if short[0] & 3 == 3 else short
        r = next(riscv.instructions(code, address))
        return Decoded(address, len(code), riscv_work.work_of(r), riscv_work.target_of(r))


def read_listing(image: Image) -> Listing:
    return Listing(read_elf(image.elf.read_bytes()))


def cycles_of(blocks: Iterable[Block], listing: Listing, timing: Timing) -> Cycles:
    """What the blocks take on a core. Instructions overlap only inside of a block."""
    total = Cycles()
    for block in blocks:
        once, before = Cycles(), None
        for i in listing.block(block):
            once += _cycles(i.work, before, timing)
            before = i.work.kind
        taken = timing.cost(before).taken if before else (0, 0, 0)
        total += once.times(block.executed) + Cycles(*taken).times(block.taken)
    return total


def _cycles(work: Work, before: Kind | None, timing: Timing) -> Cycles:
    cost = timing.cost(work.kind)
    each = cost.each * work.registers
    paired = cost.paired is not None and before in FRIENDS.get(work.kind, ())
    expected = cost.paired if paired and cost.paired is not None else cost.expected
    return Cycles(expected + each, cost.best + each, cost.worst + each)


def cycles_json(cycles: Cycles | None, cpu: str, hz: int) -> dict[str, Any]:
    """`cycles` and `time_ms` of --json: estimates, each with its range; null where nothing is known."""
    if cycles is None:
        return {"cycles": None, "cycles_range": None, "cycles_source": None, "time_ms": None, "time_ms_range": None}
    ends = (cycles.best, cycles.worst)
    return {
        "cycles": round(cycles.expected),
        "cycles_range": [round(c) for c in ends],
        "cycles_source": TIMINGS[cpu].source,
        "time_ms": milliseconds(cycles.expected, hz),
        "time_ms_range": [milliseconds(c, hz) for c in ends],
    }


def time_words(cycles: Cycles, hz: int) -> tuple[str, str]:
    """The figure, and what it is: `12.3` and `ms at 64 MHz, estimated: 11.8 to 14.1`."""
    ms, least, most = (figure(milliseconds(c, hz)) for c in (cycles.expected, cycles.best, cycles.worst))
    return ms, f"ms at {frequency(hz)}, estimated{'' if least == most else f': {least} to {most}'}"


def milliseconds(cycles: float, hz: int) -> float:
    return round(1e3 * cycles / hz, 6)

"""Estimate the clock cycles of executed blocks from the core's cycle table, with their range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from baretorch.firmware.calls import DECODERS
from baretorch.firmware.elf import Elf, read_elf
from baretorch.firmware.instructions import split
from baretorch.firmware.types import Image
from baretorch.machines.run import Run
from baretorch.machines.types import Block, FlashReads
from baretorch.measure.numbers import figure, frequency
from baretorch.npu.partition import Partition
from baretorch.targets.cycles import FRIENDS, Kind, Timing, Work
from baretorch.targets.flash import CONTROLLERS, FIXED_PRICE
from baretorch.targets.types import Chip


@dataclass(frozen=True)
class Cycles:
    """A number of cycles: expected, best case and worst case."""

    expected: float = 0
    best: float = 0
    worst: float = 0

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.expected + other.expected, self.best + other.best, self.worst + other.worst)

    def without(self, other: Cycles) -> Cycles:
        """Return the cycles that are left after others have passed."""
        left = (self.expected - other.expected, self.best - other.best, self.worst - other.worst)
        return Cycles(*(max(0, cycles) for cycles in left))

    def times(self, n: float) -> Cycles:
        return Cycles(self.expected * n, self.best * n, self.worst * n)


@dataclass(frozen=True)
class Flash:
    """Reads from flash past the caches, and how many cycles the core waits for them."""

    waits: Cycles = Cycles()
    bytes: int = 0
    code_misses: int = 0
    data_misses: int = 0

    def __add__(self, other: Flash) -> Flash:
        return Flash(
            self.waits + other.waits,
            self.bytes + other.bytes,
            self.code_misses + other.code_misses,
            self.data_misses + other.data_misses,
        )

    def __str__(self) -> str:
        return f"{self.misses:,} misses of its cache ({self.code_misses:,} of code), {self.bytes:,} bytes"

    @property
    def misses(self) -> int:
        return self.code_misses + self.data_misses


@dataclass(frozen=True)
class Time:
    """Cycles of the core, and its waits for flash; None if flash costs nothing, or if its cost is not known."""

    core: Cycles
    flash: Flash | None

    def __add__(self, other: Time) -> Time:
        return Time(self.core + other.core, self.flash and other.flash and self.flash + other.flash)

    @property
    def all(self) -> Cycles:
        return self.core + self.flash.waits if self.flash else self.core


@dataclass(frozen=True)
class Decoded:
    """An instruction of the image: its address, size, work, and the address that it may jump to."""

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
        decoder = DECODERS[self.elf.machine]
        long = decoder.is_long(self._halfword(address))
        (i,) = split(self.elf.bytes_at(address, 4 if long else 2), address, decoder.is_long)
        work = decoder.work_of(i)
        if work.kind is Kind.SKIP and decoder.is_long(self._halfword(i.end)):
            work = Work(Kind.SKIP_LONG)
        return Decoded(address, i.size, work, decoder.jump_target(i))

    def _halfword(self, address: int) -> int:
        return int.from_bytes(self.elf.bytes_at(address, 2), "little")


def read_listing(image: Image) -> Listing:
    return Listing(read_elf(image.elf.read_bytes()))


def cycles_of(blocks: Iterable[Block], listing: Listing, timing: Timing) -> Cycles:
    """Estimate the cycles of blocks on a core. Instructions overlap only inside of a block."""
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
    friends = FRIENDS.get(work.kind, ())
    expected = cost.paired if cost.paired is not None and before in friends else cost.expected
    return Cycles(expected + each, cost.best + each, cost.worst + each)


def flash_of(reads: Iterable[FlashReads]) -> Flash:
    """Add up the flash reads of one core, without copies that run at the same time."""
    parts = (Flash(Cycles(*r.waits), r.bytes, r.code_misses, r.data_misses) for r in reads if not r.copied)
    return sum(parts, Flash())


def copies_of(run: Run, core: Callable[[Sequence[Block]], Cycles]) -> dict[int, Flash]:
    """Return the waits for DMA copies, by the site of the layer that waits.

    Where a copy is awaited, the core waits for the rest of it. During the copy, the core waits for at most one word of
    it at each of its own misses (half a word is expected). A copy continues while the core computes, and pauses while
    the core waits for flash.
    """
    copies = {r.site: r for r in run.flash or () if r.copied}
    if not copies:
        return {}
    began = {r.copied: r for r in copies.values()}
    sites: dict[int, list[Block]] = {}
    for block in run.blocks:
        sites.setdefault(block.site, []).append(block)
    sites.pop(0, None)
    found: dict[int, Flash] = {}
    left, late, word, bytes_ = Cycles(), Cycles(), Cycles(), 0
    for site, blocks in sites.items():  # in the order of their visits
        if (copy := copies.get(site)) is not None:
            late, left, bytes_ = left, Cycles(), copy.bytes
        elif (copy := began.get(site)) is not None:
            left, word = Cycles(*copy.waits), Cycles(*copy.waits).times(4 / copy.bytes)
        else:
            misses = flash_of(r for r in run.flash or () if r.site == site).misses if left.worst else 0
            between = Cycles(word.expected / 2, 0, word.worst).times(misses)
            found[site] = Flash(late + between, bytes_)
            late, bytes_, left = Cycles(), 0, left.without(core(blocks))
    return found


def shared_flash(reads: Sequence[FlashReads], core: Cycles) -> Flash:
    """Add up the flash reads of cores that compute in parallel for `core` cycles and share one flash.

    At best, all cores but one wait while another computes; at worst, no core computes while another waits. If the reads
    take longer than `core`, flash is busy all the time.
    """
    each = [flash_of(r for r in reads if r.core == n).waits for n in sorted({r.core for r in reads})]
    most = max((w.expected for w in each), default=0)
    waits = Cycles(
        max(most, sum(w.expected for w in each) - core.expected),
        max((w.best for w in each), default=0),
        sum(w.worst for w in each),
    )
    return replace(flash_of(reads), waits=waits)


SIMULATED = "simulated cycle by cycle, as in the core's RTL; the rest of the chip follows its TOML"


def core_source(chip: Chip) -> str:
    """Name the source of the core's cycle table."""
    timing = chip.cpu.timing
    return SIMULATED if chip.is_simulated or timing is None else timing.source


def is_exact(chip: Chip) -> bool:
    """Return whether times of the chip are exact: a cluster is simulated, and AVR's table leaves nothing open."""
    timing = chip.cpu.timing
    return chip.is_simulated or (timing is not None and timing.exact)


def time_of(image: Image, run: Run, partition: Partition | None = None) -> Time | None:
    """Compute the time of a run; an estimate unless `is_exact`. None if the emulator does not report what ran, or if an
    NPU computes parts of the model, whose time is not known."""
    if partition is not None and partition.regions:
        return None
    if image.board.chip.is_simulated and run.emulator_cycles is not None:
        slow = flash_of(run.flash or ())
        core = run.emulator_cycles - slow.waits.expected
        return Time(Cycles(core, core, core), slow)
    timing = image.board.chip.cpu.timing
    if timing is None or not run.blocks:
        return None
    listing = read_listing(image)
    found = cycles_of(run.blocks, listing, timing)
    cores, reads = run.cores, run.flash  # all of the cores' instructions are in the blocks
    if cores is None:
        late = sum(copies_of(run, lambda blocks: cycles_of(blocks, listing, timing)).values(), Flash())
        return Time(found, None if reads is None else flash_of(reads) + late)
    path = found.times(cores.critical_path / sum(cores.instructions))
    return Time(path, None if reads is None else shared_flash(reads, path))


def cycles_json(time: Time | None, chip: Chip) -> dict[str, Any]:
    """Return `cycles`, their parts, and `time_ms`, each with its range; null if it is not known."""
    flash = time.flash if time else None
    waits = flash.waits if flash else Cycles() if time and chip.flash_path is None else None
    hz = chip.clock_hz
    return {
        **_range_json("cycles", time.all if time else None),
        **_range_json("core_cycles", time.core if time else None),
        **_range_json("flash_cycles", waits),
        "flash_bytes": flash.bytes if flash else None,
        "flash_misses": {"code": flash.code_misses, "data": flash.data_misses} if flash else None,
        "cycles_source": core_source(chip) if time else None,
        "flash_source": flash_source(chip) if flash else None,
        "time_ms": milliseconds(time.all.expected, hz) if time else None,
        "time_ms_range": [milliseconds(c, hz) for c in (time.all.best, time.all.worst)] if time else None,
    }


def _range_json(name: str, cycles: Cycles | None) -> dict[str, Any]:
    if cycles is None:
        return {name: None, f"{name}_range": None}
    return {name: round(cycles.expected), f"{name}_range": [round(cycles.best), round(cycles.worst)]}


def flash_source(chip: Chip) -> str:
    """Name the source of the cost of flash reads."""
    path = chip.flash_path
    if path is None or path.controller == FIXED_PRICE:
        return "the chip's TOML"
    return CONTROLLERS[path.controller].source


def unpaid_flash(time: Time, chip: Chip) -> str:
    """Explain why the time does not include flash; empty if it does."""
    if is_exact(chip):
        return ""
    if time.flash is None:
        return "; waits for flash are not included"
    return "" if time.flash.misses else "; no waits for flash"


def time_words(cycles: Cycles, chip: Chip, what: str = "") -> tuple[str, str]:
    """Format a time, such as `12.3`, and its unit and range: `ms at 64 MHz, estimated between 11.8 and 14.1`."""
    hz = chip.clock_hz
    words = what or f"ms at {frequency(hz)}{'' if is_exact(chip) else ', estimated'}"
    ms, least, most = (figure(milliseconds(c, hz)) for c in (cycles.expected, cycles.best, cycles.worst))
    return ms, words if least == most else f"{words}{',' if what else ''} between {least} and {most}"


def milliseconds(cycles: float, hz: int) -> float:
    return round(1e3 * cycles / hz, 6)

"""Ethos-U as a core sees it: a page of registers that start it, and say how it went.

It takes its time: the first look at STATUS finds it running, and only then it works, when somebody looks again or the
core sleeps. So a driver that does not wait reads what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from baretorch.emulators.npu.faults import Fault, Kind
from baretorch.emulators.npu.interpreter import internal_memory, run_stream
from baretorch.emulators.npu.memory import INTERNAL, Memory, Region
from baretorch.npu.accelerators import Accelerator, Family

SIZE = 0x1000
REGIONS = 8
EXTERNAL = 0  # the space of what is outside

ID, STATUS, CMD, RESET, QBASE, QBASE_HIGH, QREAD, QCONFIG, QSIZE, PROT, CONFIG, LOCK = range(0x00, 0x30, 4)
REGIONCFG = 0x3C
LIMITS = range(0x40, 0x60, 4)  # of accesses to memory, and its kinds: kept, and of no effect here
BASEP = range(0x80, 0xC0, 4)
QUIET = (LOCK, *range(0x180, 0x1C0, 4), *range(0x300, 0x380, 4))  # what measures: reads as 0
IDENTITY = range(0xFD0, 0x1000, 4)
ALIGNED, ALIGNED_BASES = 16, (QBASE, *BASEP[::2])
KEPT = (QBASE, QBASE_HIGH, QCONFIG, QSIZE, REGIONCFG, *LIMITS, *BASEP)

ID_WORDS = {Family.U55: 0x10066001, Family.U65: 0x10066001, Family.U85: 0x20007000}  # as payloads say

RUNNING, IRQ, BUS_ERROR, RESETTING, PARSE_ERROR, END, DECODER_FAULT = (1 << bit for bit in (0, 1, 2, 3, 4, 5, 7))
HISTORY = 16  # the lowest bit of what the stream's IRQ and STOP said
RUN, CLEAR_IRQ = 1, 2
CLOCK_AND_POWER = 0xC
ERRORS = {Kind.PARSE: PARSE_ERROR, Kind.BUS: BUS_ERROR, Kind.DECODER: DECODER_FAULT}


@dataclass(frozen=True)
class Bank:
    """Memory that the NPU reaches, where the core has it."""

    origin: int
    region: Region  # all of it


class State(Enum):
    IDLE = auto()
    STARTED = auto()
    SEEN_RUNNING = auto()


class Misuse(Exception):
    """What no driver may do."""


class Device:
    def __init__(self, accelerator: Accelerator, banks: Sequence[Bank], stuck: bool = False) -> None:
        """`stuck`: it never ends, for tests of drivers."""
        self.accelerator = accelerator
        self._banks = banks
        self._stuck = stuck
        self.runs = 0  # streams that came to their end
        self.last_fault: Fault | None = None  # what was wrong when STATUS says that something was
        self._reset(0)

    def _reset(self, prot: int) -> None:
        self._values = dict.fromkeys(KEPT, 0)
        self._values[PROT] = prot
        self._status = RESETTING
        self._read = 0
        self._state = State.IDLE
        self._held = 0

    @property
    def irq(self) -> bool:
        """Whether its line to the interrupt controller is up."""
        return bool(self._status & IRQ)

    @property
    def busy(self) -> bool:
        return self._state is not State.IDLE

    @property
    def seen(self) -> bool:
        """It is busy, and the core knows."""
        return self._state is State.SEEN_RUNNING

    def read(self, offset: int) -> int:
        if offset == STATUS:
            return self._read_status()
        if offset in (QREAD, CMD):
            return self._read if offset == QREAD else self._held
        if offset in (ID, CONFIG):
            return ID_WORDS[self.accelerator.family] if offset == ID else self.accelerator.config
        if offset in self._values:
            return self._values[offset]
        if offset in QUIET or offset in IDENTITY:
            return 0
        raise Misuse(f"the NPU has no register at {offset:#05x} to be read")

    def _read_status(self) -> int:
        status = self._status
        if self._state is State.SEEN_RUNNING:
            self.work()
            return self._status
        if self._state is State.STARTED:
            self._state = State.SEEN_RUNNING
        self._status &= ~RESETTING
        return status

    def write(self, offset: int, value: int) -> None:
        if offset == CMD:
            self._command(value)
        elif offset == RESET:
            self._reset(value & 3)
        elif self.busy and offset in KEPT:
            raise Misuse(f"the register at {offset:#05x} is written while the NPU runs")
        elif offset in KEPT:
            if offset in ALIGNED_BASES and value % ALIGNED:
                raise Misuse(f"the address {value:#x} at {offset:#05x} is not a multiple of {ALIGNED}")
            self._values[offset] = value
        elif offset not in QUIET:
            raise Misuse(f"the NPU has no register at {offset:#05x} to be written")

    def _command(self, value: int) -> None:
        self._held = value & CLOCK_AND_POWER
        if value & CLEAR_IRQ:
            self._status &= ~(IRQ | 0xFFFF << HISTORY)
        if not value & RUN or self.busy:
            return
        if self._status & RESETTING:
            raise Misuse("the NPU is started, and nobody has waited for its reset to end")
        if self._status & (BUS_ERROR | PARSE_ERROR | DECODER_FAULT):
            raise Misuse("the NPU is started after an error, and was not reset")
        self._status = self._status & ~END | RUNNING
        self._state = State.STARTED

    def work(self) -> None:
        """All of what the stream says, if there is one to be run. Faults that no STATUS tells of are raised."""
        if not self.busy or self._stuck:
            return
        self._state = State.IDLE
        self._status &= ~RUNNING
        try:
            stream = self._stream()
            run_stream(self.accelerator, stream, self._memory())
            self._read = len(stream)
            self._status |= END | IRQ | int.from_bytes(stream[-2:], "little") << HISTORY
            self.runs += 1
        except Fault as fault:
            if fault.kind not in ERRORS:
                raise
            self.last_fault = fault
            self._read = fault.at or 0
            self._status |= ERRORS[fault.kind] | IRQ

    def _address(self, low: int) -> int:
        return self._values[low] | self._values[low + 4] << 32

    def _stream(self) -> bytes:
        at, size = self._address(QBASE), self._values[QSIZE]
        if at % 4 or size % 4 or size == 0:
            raise Fault(Kind.BUS, f"a stream of {size} bytes at {at:#x}", 0)
        memory = Memory({0: self._region(at) or Region(np.zeros(0, np.uint8))})
        try:
            return memory.read_bytes(0, 0, size, "the command stream")
        except Fault as fault:
            raise fault.placed(0, None) from None

    def _memory(self) -> Memory:
        found = {i: self._region(self._address(BASEP[2 * i])) for i in range(REGIONS)}
        regions = {i: region for i, region in found.items() if region is not None}
        return Memory({**regions, INTERNAL: internal_memory(self.accelerator)})

    def _region(self, address: int) -> Region | None:
        """From an address to the end of its bank; what is in no bank is answered by nobody."""
        for bank in self._banks:
            if 0 <= address - bank.origin < len(bank.region.data):
                return _part(bank, address)
        return None


def _part(bank: Bank, address: int) -> Region:
    whole, at = bank.region, address - bank.origin

    def moved(told: Callable[[int, int], None] | None) -> Callable[[int, int], None] | None:
        return None if told is None else lambda low, end: told(low + at, end + at)

    fetch, wrote = moved(whole.fetch), moved(whole.wrote)
    return Region(whole.data[at:], None, whole.constant, EXTERNAL, address, fetch, wrote)

"""Ethos-U as a core sees it: a page of registers that start it and report its state. Registers, their bits and their
values after a reset are those of Arm's ethosu55_interface.h, ethosu65_interface.h and ethosu85_interface.h.

The first read of STATUS finds it running. It computes when STATUS is read again, or when the core sleeps, so that a
driver that does not wait reads old results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.interpreter import internal_memory, run_stream
from baretorch.machines.npu.memory import INTERNAL, NpuMemory, NpuRegion
from baretorch.npu.accelerators import Accelerator, Family

SIZE = 0x1000
REGIONS = 8
EXTERNAL = 0  # the space of memory outside of the NPU

ID, STATUS, CMD, RESET, QBASE, QBASE_HIGH, QREAD, QCONFIG, QSIZE, PROT, CONFIG, LOCK = range(0x00, 0x30, 4)
REGIONCFG = 0x3C
LIMITS = range(0x40, 0x50, 4)  # of accesses to memory; the U85 has its kinds of memory there, and limits after them
AXI_SRAM, AXI_EXT = 0x50, 0x54  # U85
BASEP = range(0x80, 0xC0, 4)
QUIET = (LOCK, *range(0x180, 0x1C0, 4), *range(0x300, 0x380, 4))  # LOCK and performance counters: read as 0
IDENTITY = range(0xFD0, 0x1000, 4)
ALIGNED, ALIGNED_BASES = 16, (QBASE, *BASEP[::2])

WORD = 0xFFFF_FFFF
HIGH = {Family.U55: 0, Family.U65: 0xFF, Family.U85: 0xFF}  # of the upper half of an address
LIMIT = {Family.U55: 0x0F1F_00F3, Family.U65: 0x1F3F_00F3, Family.U85: 0x0000_00F7}
U85_LIMIT = 0x0003_1F3F

ID_WORDS = {Family.U55: 0x1010_4201, Family.U65: 0x1006_6001, Family.U85: 0x2000_7001}
CUSTOM_DMA, FUNCTIONAL_SAFETY = 1 << 27, 1 << 26  # bits of CONFIG that no payload has; the U85 has the first only
PRIVILEGED, NON_SECURE = 1, 2  # bits of RESET and PROT

RUNNING, IRQ, BUS_ERROR, RESETTING, PARSE_ERROR, END = (1 << bit for bit in range(6))
DECODER_FAULT, ECC_FAULT, BRANCH_FAULT = (1 << bit for bit in (7, 8, 9))
HISTORY = 0xFFFF_0000  # the parameters of the stream's IRQ and STOP, until CMD clears them bit by bit
RUN, CLEAR_IRQ, CLOCK_GATING, POWER_GATING = 1, 2, 4, 8
GATING = CLOCK_GATING | POWER_GATING
ERRORS = {FaultKind.PARSE: PARSE_ERROR, FaultKind.BUS: BUS_ERROR, FaultKind.DECODER: DECODER_FAULT}
U85_ERRORS = {FaultKind.PARSE: PARSE_ERROR, FaultKind.BUS: BUS_ERROR, FaultKind.BRANCH: BRANCH_FAULT}
FAULTS = BUS_ERROR | PARSE_ERROR | DECODER_FAULT | ECC_FAULT | BRANCH_FAULT


def _registers(family: Family) -> dict[int, int]:
    """Return the bits that a driver may set, by the registers that keep them."""
    bits = {QBASE: WORD, QBASE_HIGH: HIGH[family], QCONFIG: 3, QSIZE: WORD, REGIONCFG: 0xFFFF}
    bits |= dict.fromkeys(LIMITS, LIMIT[family])
    if family is Family.U85:
        bits |= {AXI_SRAM: U85_LIMIT, AXI_EXT: U85_LIMIT}
    return bits | dict.fromkeys(BASEP[::2], WORD) | dict.fromkeys(BASEP[1::2], HIGH[family])


@dataclass(frozen=True)
class NpuBank:
    """A memory that the NPU reaches, at the core's address."""

    origin: int
    region: NpuRegion  # all of it


class Progress(Enum):
    """The progress of a stream."""

    IDLE = auto()
    STARTED = auto()
    SEEN_RUNNING = auto()


class Misuse(Exception):
    """An error that a driver must not make."""


class NpuDevice:
    """An Ethos-U with its registers, between a core and memory."""

    def __init__(self, accelerator: Accelerator, banks: Sequence[NpuBank]) -> None:
        self.accelerator = accelerator
        self._banks = banks
        self._bits = _registers(accelerator.family)
        self.runs = 0  # streams that came to their end
        self._reset(0)
        self._status = 0  # long after power-up
        self._fresh = True  # no driver has reset it

    def _reset(self, prot: int) -> None:
        self._values = dict.fromkeys(self._bits, 0)
        self._prot = prot
        self._status = RESETTING
        self._read = 0
        self._state = Progress.IDLE
        self._gating = GATING
        self._fresh = False

    @property
    def irq(self) -> bool:
        """Report whether its line to the interrupt controller is up."""
        return bool(self._status & IRQ)

    @property
    def busy(self) -> bool:
        return self._state is not Progress.IDLE

    @property
    def seen(self) -> bool:
        """Report whether it is busy, and the core has seen that."""
        return self._state is Progress.SEEN_RUNNING

    def read(self, offset: int) -> int:
        if offset == STATUS:
            return self._read_status()
        readable = self._values | {
            ID: ID_WORDS[self.accelerator.family],
            CMD: self._gating,
            QREAD: self._read,
            PROT: self._prot,
            CONFIG: self.accelerator.config,
        }
        if offset not in readable and offset not in QUIET and offset not in IDENTITY:
            raise Misuse(f"the NPU has no register at {offset:#05x} to be read")
        return 0 if self._status & RESETTING else readable.get(offset, 0)

    def _read_status(self) -> int:
        status = self._status
        if self._state is Progress.SEEN_RUNNING:
            self.work()
            return self._status
        if self._state is Progress.STARTED:
            self._state = Progress.SEEN_RUNNING
        self._status &= ~RESETTING
        return status

    def write(self, offset: int, value: int) -> None:
        legal = self._bits | {CMD: HISTORY | GATING | CLEAR_IRQ | RUN, RESET: PRIVILEGED | NON_SECURE}
        if offset not in legal and offset not in QUIET:
            raise Misuse(f"the NPU has no register at {offset:#05x} to be written")
        if value & ~legal.get(offset, WORD):
            raise Misuse(f"{value:#x} at {offset:#05x} has bits that are read-only, reserved or not modelled")
        if self._status & RESETTING and offset != RESET:
            raise Misuse(f"the register at {offset:#05x} is written before the NPU's reset has ended")
        if offset == CMD:
            self._command(value)
        elif offset == RESET:
            self._reset(value)
        elif offset in self._bits:
            self._set(offset, value)

    def _set(self, offset: int, value: int) -> None:
        if self.busy:
            raise Misuse(f"the register at {offset:#05x} is written while the NPU runs")
        if offset in ALIGNED_BASES and value % ALIGNED:
            raise Misuse(f"the address {value:#x} at {offset:#05x} is not a multiple of {ALIGNED}")
        self._values[offset] = value
        if offset in (QBASE, QSIZE):
            self._status &= ~END

    def _command(self, value: int) -> None:
        """Execute a write to CMD. One that starts the NPU or clears its interrupt must not change the gating."""
        gating = value & GATING
        if value & (RUN | CLEAR_IRQ) and gating != self._gating:
            raise Misuse(f"CMD = {value:#x} changes clock and power gating from {self._gating:#x} to {gating:#x}")
        self._gating = gating
        self._status &= ~(value & HISTORY | (IRQ if value & CLEAR_IRQ else 0))
        if not value & RUN or self.busy:
            return
        if self._fresh:
            raise Misuse("the NPU is started, and was not reset since power-up")
        if self._status & FAULTS:
            raise Misuse("the NPU is started after an error, and was not reset")
        if self._status & END:
            raise Misuse("the NPU is started, and neither QBASE nor QSIZE was written since the last stream ended")
        self._status |= RUNNING
        self._state = Progress.STARTED

    def work(self) -> None:
        """Run the whole stream if one was started. Faults that STATUS does not report are raised."""
        if not self.busy:
            return
        self._state = Progress.IDLE
        self._status &= ~RUNNING
        errors = U85_ERRORS if self.accelerator.family is Family.U85 else ERRORS
        try:
            stream = self._stream()
            run_stream(self.accelerator, stream, self._memory())
            self._read = len(stream)
            self._status |= END | IRQ | int.from_bytes(stream[-2:], "little") << 16
            self.runs += 1
        except NpuFault as fault:
            if fault.kind not in errors:
                raise
            self._read = fault.at or 0
            self._status |= errors[fault.kind] | IRQ

    def _address(self, low: int) -> int:
        return self._values[low] | self._values[low + 4] << 32

    def _stream(self) -> bytes:
        at, size = self._address(QBASE), self._values[QSIZE]
        if at % 4 or size % 4 or size == 0:
            raise NpuFault(FaultKind.BUS, f"a stream of {size} bytes at {at:#x}", 0)
        memory = NpuMemory({0: self._region(at) or NpuRegion(np.zeros(0, np.uint8))})
        try:
            return memory.read_bytes(0, 0, size, "the command stream")
        except NpuFault as fault:
            raise fault.at_position(0, None) from None

    def _memory(self) -> NpuMemory:
        found = {i: self._region(self._address(BASEP[2 * i])) for i in range(REGIONS)}
        regions = {i: region for i, region in found.items() if region is not None}
        return NpuMemory({**regions, INTERNAL: internal_memory(self.accelerator)})

    def _region(self, address: int) -> NpuRegion | None:
        """Return the memory from an address to the end of its bank; empty outside all banks."""
        for bank in self._banks:
            if 0 <= address - bank.origin < len(bank.region.data):
                return _part(bank, address)
        return None


def _part(bank: NpuBank, address: int) -> NpuRegion:
    whole, at = bank.region, address - bank.origin

    def shift(notify: Callable[[int, int], None] | None) -> Callable[[int, int], None] | None:
        return None if notify is None else lambda low, end: notify(low + at, end + at)

    fetch, wrote = shift(whole.fetch), shift(whole.wrote)
    return NpuRegion(whole.data[at:], None, whole.constant, EXTERNAL, address, fetch, wrote)

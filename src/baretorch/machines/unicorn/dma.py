"""The DMA engine that copies from flash while the cores work: channel 0 of the RP2040 and RP2350, fed by the stream of
the flash controller.

Copied bytes arrive when a core waits for the copy; until then the target holds nothing useful. A core that waits
continues after the time that flash takes for the copy. Whatever the data sheets forbid ends the emulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from baretorch.machines.types import FlashReads
from baretorch.machines.unicorn.core import Core, SharedMemory
from baretorch.machines.unicorn.device import ChipDevice, Stopped
from baretorch.machines.unicorn.state import CALLBACK, ChipChange, ChipState, pointer_to
from baretorch.targets.flash import Waits
from baretorch.targets.parts import FlashDma

READ_ADDR, WRITE_ADDR, TRANS_COUNT, CTRL = 0x0, 0x4, 0x8, 0xC  # of channel 0
STREAM_ADDR, STREAM_CTR = 0x0, 0x4
ENABLED, SIZE, WORDS = 1, 3 << 2, 2 << 2
NOTHING_USEFUL = b"\xa5"


@dataclass(frozen=True)
class Bits:
    """The bits in which the chips' control registers differ."""

    incr_write: int
    treq: int
    busy: int


DRIVERS = {"rp2040": Bits(1 << 5, 15, 1 << 24), "rp2350": Bits(1 << 6, 17, 1 << 26)}


class DmaEngine(ChipDevice):
    """Channel 0, which copies words from flash."""

    faults: ClassVar[Mapping[type[Exception], str]] = {Stopped: "DMA is used wrongly:"}

    def __init__(
        self,
        dma: FlashDma,
        memories: Sequence[SharedMemory],
        is_alive: Callable[[], bool],
        word: Callable[[], Waits],
        left: bool,
    ) -> None:
        """Set up the engine.

        `is_alive` reports whether it is out of reset, `word` returns the time of a word from flash, and `left` means
        that another program may have started something.
        """
        self._dma, self._bits = dma, DRIVERS[dma.driver]
        self._memories, self._is_alive, self._word = memories, is_alive, word
        self._registers: dict[int, int] = {}
        self._left: tuple[int, int, int] | None = None  # source, target and bytes of the running copy
        self._done = 0.0  # clock
        self._began = 0  # site
        self._stale = left  # words of an earlier stream come first
        self.reads: list[FlashReads] = []  # of the last call of the run function
        self._call = -1
        self._callback = CALLBACK(self._access)

    def attach(self, state: ChipState, core: Core) -> None:
        self._state, self._core = state, core
        state.dma = pointer_to(self._callback)
        state.dma_base[:] = (self._dma.base, self._dma.stream)

    def _access(self, address: int, value: int, why: int, clock: int) -> int:
        try:
            if not self._is_alive():
                raise Stopped("the engine is in reset", "rule: RESETS first")
            if why == ChipChange.READ:
                return self._read(address, clock)
            if self._left is not None and address != self._dma.base + CTRL:
                raise Stopped("a copy is set up while another one is under way", "rule: wait until it is not BUSY")
            self._registers[address] = value
            if address == self._dma.stream + STREAM_CTR and value == 0:
                self._stale = False
            if address == self._dma.base + CTRL and value & ENABLED:
                self._begin(value, clock)
        except Exception as error:
            self.error = error
        return int(self.error is not None)

    def _read(self, address: int, clock: int) -> int:
        """Read a register. A core that reads whether the channel is busy waits until it is not."""
        if address == self._dma.base + CTRL and self._left is not None:
            core = self._core.state
            waits = max(0, int(self._done - clock))
            core.idle += waits
            core.entered[2] += waits  # a call does not count them as instructions
            source, target, size = self._left
            self._put(target, self._bytes(source, size))
            self._left = None
            if core.running:
                taken = Waits(*(cycles * size / 4 for cycles in self._word()))
                self.reads.append(FlashReads(core.number, core.site, 0, 0, size, taken, self._began))
        return self._registers.get(address, 0)

    def _begin(self, control: int, clock: int) -> None:
        dma, bits = self._dma, self._bits
        source, words = (self._registers.get(dma.stream + at, 0) for at in (STREAM_ADDR, STREAM_CTR))
        read, target, count = (self._registers.get(dma.base + at, 0) for at in (READ_ADDR, WRITE_ADDR, TRANS_COUNT))
        needed = ENABLED | WORDS | bits.incr_write | dma.dreq << bits.treq
        if self._stale:
            raise Stopped("words that another program requested come first", "rule: STREAM_CTR = 0 ends its stream")
        if self._left is not None:
            raise Stopped("a copy begins while another one is under way", "rule: wait until it is not BUSY")
        if control != needed:
            raise Stopped(f"CTRL is {control:#010x}", f"rule: {needed:#010x} takes words from the stream to memory")
        if read != dma.fifo or not words or words != count or source % 4 or target % 4:
            have = f"from {source:#010x}, {words} words, read at {read:#010x}; to {target:#010x}, {count} words"
            raise Stopped("stream and channel do not agree", have)
        self._bytes(source, 4 * words)
        self._put(target, NOTHING_USEFUL * (4 * words))
        self._left = source, target, 4 * words
        self._done = clock + words * self._word().expected
        self._registers[dma.stream + STREAM_CTR] = 0
        core = self._core.state
        self._began = core.site
        if self._call != self._state.call_count:
            self._call = self._state.call_count
            self.reads = []

    def _bytes(self, address: int, size: int) -> bytes:
        memory, at = self._find(address, size, "flash is streamed from")
        return memory.bytes[at : at + size]

    def _put(self, address: int, data: bytes) -> None:
        memory, at = self._find(address, len(data), "RAM is written to")
        memory.bytes[at : at + len(data)] = data

    def _find(self, address: int, size: int, what: str) -> tuple[SharedMemory, int]:
        for memory in self._memories:
            if memory.origin <= address and address + size <= memory.origin + len(memory.bytes):
                return memory, address - memory.origin
        raise Stopped(f"{what} {address:#010x}, where no memory is")

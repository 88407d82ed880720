"""The flash chip of a board, as far as start-up code uses it: status registers, and the reads that it understands.

Commands and times are those of Winbond's W25Q080 and W25Q16JV data sheets, which the Picos have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOTHING = 0xFF  # the value of lines that no chip drives
BUSY, WRITE_ENABLED, QUAD_ENABLED = 1, 2, 2  # in the first status register twice, in the second once
WRITE_US = 10_000  # of a status register
WRITE_STATUS, WRITE_STATUS_2 = 0x01, 0x31
READ_STATUS, READ_STATUS_2 = 0x05, 0x35
WRITE_ENABLE, WRITE_DISABLE = 0x06, 0x04
READ_NUMBER, SILENCE = 0x4B, 4  # bytes before the number that no other chip has
OTHERS = frozenset({WRITE_STATUS, READ_STATUS, READ_STATUS_2, WRITE_ENABLE, WRITE_DISABLE, WRITE_STATUS_2, READ_NUMBER})


@dataclass(frozen=True)
class Format:
    """The format of a read after its command: lines of the address and of the data, whether a mode byte follows the
    address, and dummy clocks."""

    address: int
    data: int
    mode: bool
    silence: int


READS: Mapping[int, Format] = {
    0x03: Format(1, 1, False, 0),
    0x0B: Format(1, 1, False, 8),
    0xBB: Format(2, 2, True, 0),
    0xEB: Format(4, 4, True, 4),
}


@dataclass(frozen=True)
class FlashRequest:
    """A read as a controller sends it; without a command if the chip is expected to be in continuous mode."""

    command: int | None
    format: Format
    mode: int | None
    hz: float

    @property
    def continues(self) -> bool:
        """Report whether the chip will expect no command the next time."""
        return self.mode is not None and self.mode >> 4 & 3 == 2


@dataclass(frozen=True)
class FlashKind:
    """A kind of flash chip: the commands that it knows, with the fastest clock of each read; whether QE is set at the
    factory, whether it can be set, and whether there is a continuous mode."""

    reads: Mapping[int, float] = field(default_factory=lambda: {0x03: 50e6, 0x0B: 104e6, 0xBB: 104e6, 0xEB: 104e6})
    others: frozenset[int] = OTHERS
    quad: bool = True
    quad_is_writable: bool = True
    continuous: bool = True
    number: bytes = bytes.fromhex("E66118604B3A7C25")


class FlashChip:
    """The state of one flash chip; times are in microseconds."""

    def __init__(self, kind: FlashKind) -> None:
        self.kind = kind
        self.status = [0, QUAD_ENABLED if kind.quad else 0]
        self.continuous: int | None = None  # the command that is no longer sent
        self._sent: list[int] = []
        self.writes = 0  # of status registers
        self._done = 0.0  # when the last is done

    def exchange(self, byte: int, now: float) -> int:
        """Exchange a byte on one line in each direction, after the chip was selected."""
        self._sent.append(byte)
        if self.continuous is not None:  # the seventh bit is where a mode byte has its fourth
            if len(self._sent) == 1 and byte & 2:
                self.continuous = None
                self._sent = [NOTHING]
            return NOTHING
        command, *more = self._sent
        if not more or command not in self.kind.others or (self._is_busy(now) and command != READ_STATUS):
            return NOTHING
        if command == READ_STATUS:
            return self.status[0] | (BUSY if self._is_busy(now) else 0)
        if command == READ_NUMBER:
            number = bytes([NOTHING] * SILENCE) + self.kind.number
            return number[len(more) - 1] if len(more) <= len(number) else NOTHING
        return self.status[1] if command == READ_STATUS_2 else NOTHING

    def deselect(self, now: float) -> None:
        command, *data = self._sent or [NOTHING]
        self._sent = []
        if self._is_busy(now) or command not in self.kind.others:
            return
        if command in (WRITE_STATUS, WRITE_STATUS_2) and data and self.status[0] & WRITE_ENABLED:
            self._write(command, data, now)
        if command in (WRITE_ENABLE, WRITE_DISABLE):
            self.status[0] = (self.status[0] & ~WRITE_ENABLED) | (WRITE_ENABLED if command == WRITE_ENABLE else 0)

    def _write(self, command: int, data: list[int], now: float) -> None:
        first, second = (data[0], (*data, 0)[1]) if command == WRITE_STATUS else (self.status[0], data[0])
        if not self.kind.quad_is_writable:
            second = (second & ~QUAD_ENABLED) | (self.status[1] & QUAD_ENABLED)
        self.status = [first & ~(BUSY | WRITE_ENABLED), second]
        self._done = now + WRITE_US
        self.writes += 1

    def read(self, request: FlashRequest, now: float) -> None:
        """Execute a read, which may enter continuous mode."""
        if not self._misunderstands(request, now):
            command = request.command if request.command is not None else self.continuous
            self.continuous = command if request.continues and self.kind.continuous else None

    def refuses(self, request: FlashRequest, now: float) -> str:
        """Return the reason why the chip does not respond to a read; empty if it does."""
        if why := self._misunderstands(request, now):
            return why
        command = request.command if request.command is not None else self.continuous
        if command is not None and request.hz > self.kind.reads[command]:
            return f"{request.hz / 1e6:g} MHz are too fast for the flash chip's {command:02X}h"
        return ""

    def _misunderstands(self, request: FlashRequest, now: float) -> str:
        command = request.command
        if self.continuous is not None and command is not None:
            return f"the flash chip is in continuous mode, and takes the command {command:02X}h for an address"
        if command is None:
            command = self.continuous
        if command is None:
            return "the flash chip expects a command"
        if command not in self.kind.reads:
            return f"the flash chip does not know the command {command:02X}h"
        if self._is_busy(now):
            return "the flash chip is busy with a write"
        if request.format != READS[command]:
            return f"the flash chip expects {READS[command]} after {command:02X}h, not {request.format}"
        if READS[command].data == 4 and not self.status[1] & QUAD_ENABLED:
            return "the flash chip's bit QE is not set"
        return ""

    def _is_busy(self, now: float) -> bool:
        return now < self._done

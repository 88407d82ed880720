"""The controllers between an emulated chip and its flash: their settings by start-up code, and whether flash can be
read.

Their registers are those of the chip's silicon file, and the chip's model has the values. This module defines the
effects of writing and reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from baretorch.machines.unicorn.flash_chip import READS, FlashChip, FlashRequest, Format

Number = Callable[[str], int]  # returns the value of a field
EARLY_HZ = 50e6  # assumed: above, a bit arrives later than half a clock after its request
LINES = (1, 2, 4)
FIFO = 16  # bytes or words that are kept until they are read


class FlashPort(Protocol):
    """A controller. `block` has its registers, and `live` are those whose values `read` computes. Times are in
    microseconds, and `hz` is the chip's clock."""

    block: str
    live: tuple[str, ...]

    def write(self, name: str, value: int, now: float, hz: float) -> None: ...

    def read(self, name: str, now: float) -> int: ...

    def read_past_cache(self, now: float, hz: float) -> None:
        """Handle a read of flash past the cache."""

    def unreadable(self, now: float, hz: float) -> str:
        """Return the reason why flash cannot be read; empty if it can."""


class Ssi:
    """The RP2040's (Synopsys DW_apb_ssi; RP2040 datasheet 4.10)."""

    block = "SSI"
    live: tuple[str, ...] = ("SSI.SR", "SSI.RXFLR", "SSI.DR0")

    @staticmethod
    def left_by_boot_rom(chip: FlashChip) -> Mapping[str, int]:
        return {}

    def __init__(self, number: Number, chip: FlashChip) -> None:
        self._number = number
        self._chip = chip
        self._received: list[tuple[float, int]] = []  # when, and what
        self._sent: list[int] = []  # of a quad read
        self._until = 0.0  # when all is sent
        self._selected = False

    def write(self, name: str, value: int, now: float, hz: float) -> None:
        self._pass(now)
        if name == "SSI.SSIENR" and not value & 1:
            self._received, self._sent, self._until = [], [], now
            self._pass(now)
        if name != "SSI.DR0" or not self._number("SSI.SSIENR.SSI_EN") or not self._number("SSI.SER.SER"):
            return
        if self._number("SSI.CTRLR0") == 7 << 16:
            self._exchange(value & 0xFF, now, hz)
        elif self._number("SSI.CTRLR0.SPI_FRF") == 2 and self._number("SSI.CTRLR0.TMOD") == 3:
            self._ask(value, now, hz)

    def _exchange(self, byte: int, now: float, hz: float) -> None:
        self._selected = True
        self._until = max(self._until, now) + self._clocks(8, hz)
        answer = self._until, self._chip.exchange(byte, self._until)
        self._received += [answer] if len(self._received) < FIFO else []

    def _ask(self, word: int, now: float, hz: float) -> None:
        """Handle a command, then address and mode in one word, after which data arrives."""
        self._sent.append(word)
        if len(self._sent) == 2:
            command, address = self._sent
            self._sent = []
            request = FlashRequest(
                command, self._format(), address & 0xFF, hz / max(1, self._number("SSI.BAUDR.SCKDV"))
            )
            self._until = max(self._until, now) + self._clocks(8 + 8 + request.format.silence + 8, hz)
            self._chip.read(request, now)
            self._received.append((self._until, 0xFFFFFFFF))

    def read(self, name: str, now: float) -> int:
        self._pass(now)
        there = [value for when, value in self._received if when <= now]
        if name == "SSI.RXFLR":
            return len(there)
        if name == "SSI.DR0":
            return self._received.pop(0)[1] if there else 0
        busy, empty = now < self._until, now >= self._until
        return int(busy) | 1 << 1 | empty << 2 | bool(there) << 3

    def read_past_cache(self, now: float, hz: float) -> None:
        self._chip.read(self._request(hz), now)

    def unreadable(self, now: float, hz: float) -> str:
        self._pass(now)
        number = self._number
        if not number("SSI.SSIENR.SSI_EN") or not number("SSI.SER.SER"):
            return "the flash controller is off"
        if number("SSI.CTRLR0.TMOD") != 3 or number("SSI.CTRLR0.DFS_32") != 31 or number("SSI.CTRLR1.NDF"):
            return "the flash controller is not set up to read words"
        if number("SSI.BAUDR.SCKDV") < 2 or number("SSI.BAUDR.SCKDV") % 2:
            return "the flash controller's divider is not an even number"
        request = self._request(hz)
        if request.hz > EARLY_HZ and not number("SSI.RX_SAMPLE_DLY.RSD"):
            return f"at {request.hz / 1e6:g} MHz flash's bits are read_past_cache at too early"
        return self._chip.refuses(request, now)

    def _request(self, hz: float) -> FlashRequest:
        """Return the request that the controller sends for a word of the memory map."""
        number = self._number
        has_command = number("SSI.SPI_CTRLR0.INST_L") == 2
        byte = number("SSI.SPI_CTRLR0.XIP_CMD")
        mode = byte if not has_command and self._format().mode else None
        return FlashRequest(byte if has_command else None, self._format(), mode, hz / max(1, number("SSI.BAUDR.SCKDV")))

    def _format(self) -> Format:
        number = self._number
        lines = LINES[min(number("SSI.CTRLR0.SPI_FRF"), 2)]
        mode = number("SSI.SPI_CTRLR0.ADDR_L") == 8
        return Format(lines if mode else 1, lines, mode, number("SSI.SPI_CTRLR0.WAIT_CYCLES"))

    def _clocks(self, count: int, hz: float) -> float:
        return count * self._number("SSI.BAUDR.SCKDV") * 1e6 / hz

    def _pass(self, now: float) -> None:
        """Deselect the chip when nothing is left to send."""
        if self._selected and now >= self._until:
            self._selected = False
            self._chip.deselect(self._until)


class Qmi:
    """The RP2350's (RP2350 datasheet 12.14), its first window alone."""

    block = "QMI"
    live: tuple[str, ...] = ("QMI.DIRECT_CSR",)

    def __init__(self, number: Number, chip: FlashChip) -> None:
        self._number = number
        self._chip = chip
        self._until = 0.0
        self._selected = False

    def write(self, name: str, value: int, now: float, hz: float) -> None:
        direct = self._number("QMI.DIRECT_CSR.EN")
        if name == "QMI.DIRECT_CSR":
            selected = bool(direct and self._number("QMI.DIRECT_CSR.ASSERT_CS0N"))
            if self._selected and not selected:
                self._chip.deselect(now)
            self._selected = selected
        elif name == "QMI.DIRECT_TX" and direct:
            self._until = max(self._until, now) + 8e6 * max(1, self._number("QMI.DIRECT_CSR.CLKDIV")) / hz
            if self._selected:
                self._chip.exchange(value & 0xFF, self._until)

    def read(self, name: str, now: float) -> int:
        busy = now < self._until
        return self._number(name) | busy << 1 | (not busy) << 11 | 1 << 16

    def read_past_cache(self, now: float, hz: float) -> None:
        self._chip.read(self._request(hz), now)

    def unreadable(self, now: float, hz: float) -> str:
        if self._number("QMI.DIRECT_CSR.EN"):
            return "the flash controller is in direct mode"
        return self._chip.refuses(self._request(hz), now)

    def _request(self, hz: float) -> FlashRequest:
        number = self._number
        lines = {key: LINES[min(number(f"QMI.M0_RFMT.{key}_WIDTH"), 2)] for key in ("ADDR", "DUMMY", "DATA")}
        mode = number("QMI.M0_RFMT.SUFFIX_LEN") == 2
        silence = 4 * number("QMI.M0_RFMT.DUMMY_LEN") // lines["DUMMY"]
        return FlashRequest(
            number("QMI.M0_RCMD.PREFIX") if number("QMI.M0_RFMT.PREFIX_LEN") else None,
            Format(lines["ADDR"], lines["DATA"], mode, silence),
            number("QMI.M0_RCMD.SUFFIX") if mode else None,
            hz / (number("QMI.M0_TIMING.CLKDIV") or 256),
        )

    @staticmethod
    def left_by_boot_rom(chip: FlashChip) -> Mapping[str, int]:
        """Return the settings of the fastest read that finds an image: the boot ROM tries it first."""
        formats = {0xEB: 0x000492A8, 0xBB: 0x00009154, 0x0B: 0x00021000, 0x03: 0x00001000}
        for command, value in formats.items():
            request = FlashRequest(command, READS[command], 0 if READS[command].mode else None, 0)
            if not chip.refuses(request, 0):
                return {"QMI.M0_RFMT": value, "QMI.M0_RCMD": command}
        return {}


FLASH_PORTS: Mapping[str, type[Ssi] | type[Qmi]] = {port.block: port for port in (Ssi, Qmi)}

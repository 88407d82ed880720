"""libsimavr's AVR chips, every cycle of them: hooks/simavr.c is the process, and counts."""

from __future__ import annotations

import mmap
import struct
import tempfile
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.code import read_code
from baretorch.machines.hooks import program
from baretorch.machines.process import Process
from baretorch.machines.rows import ROW_ROOM, ROWS, read_rows
from baretorch.machines.types import Block, Driver, Tool

CALL_ROOM = 1 << 12  # of bt_counts in hooks/simavr.c
CYCLES = 8 * (1 + CALL_ROOM)  # offsets there
ROW_COUNT = CYCLES + 8 * CALL_ROOM
VECTOR_BYTES = 4
HEADERS = (Path("/usr/include"), Path("/usr/local/include"), Path("/opt/homebrew/include"))
DATA = 0xFFFF  # the bits of an address in RAM that the core knows


class SimavrMachine(Process):
    """An image on an emulated ATmega."""

    name = "simavr"

    def __init__(self, image: Image, run_symbol: str) -> None:
        board, code = image.board, read_code(image, run_symbol)
        need_simavr(board.name)
        chip = board.chip
        assert image.bin is not None and board.simavr_mcu is not None  # targets/checks.py
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._file.truncate(ROW_COUNT + 8 + ROWS.size * ROW_ROOM)
        self._counts = mmap.mmap(self._file.fileno(), 0)
        numbers = (
            *(code.run, code.returned, *code.home),
            VECTOR_BYTES * chip.counter.irq if chip.counter.irq is not None else DATA,
            code.stacks[0] & DATA,
            self._file.fileno(),
        )
        line = (str(chip.clock_hz), str(chip.uart.base & DATA), str(chip.uart.baud))
        command = [str(program("simavr.c", "simavr")), board.simavr_mcu, *line, str(image.bin), *map(str, numbers)]
        super().__init__(command, inherit=(self._file,), keep=(self._file,))
        self._listens = False  # bytes that come before the image has set up its USART are lost

    def instructions(self) -> tuple[int, ...]:
        return self._calls(8)

    def cycles(self) -> tuple[int, ...]:
        return self._calls(CYCLES)

    def blocks(self) -> tuple[Block, ...]:
        (count,) = struct.unpack_from("<Q", self._counts, ROW_COUNT)
        return read_rows(memoryview(self._counts)[ROW_COUNT + 8 :], count)

    def _calls(self, offset: int) -> tuple[int, ...]:
        (count,) = struct.unpack_from("<Q", self._counts)
        calls = struct.unpack_from(f"<{CALL_ROOM}Q", self._counts, offset)
        return tuple(calls[i % CALL_ROOM] for i in range(max(0, count - CALL_ROOM), count))


def find_simavr() -> Path | None:
    """Return the header of the installed library, if there is one."""
    return next((found for folder in HEADERS if (found := folder / "simavr" / "sim_avr.h").is_file()), None)


def need_simavr(board: str) -> None:
    """CompileError with the remedy if it is not installed."""
    if find_simavr() is None:
        raise CompileError(
            f"board {board} needs simavr",
            need="the library libsimavr and its headers",
            try_="`apt-get install libsimavr-dev`",
        )


DRIVER = Driver(
    lambda image, run_symbol, timed: SimavrMachine(image, run_symbol),
    is_installed=lambda board: find_simavr() is not None,
    tools=(
        Tool(
            "simavr",
            "library",
            "emulates AVR boards",
            "apt-get install libsimavr-dev gcc",
            find=lambda: "installed" if find_simavr() else None,
        ),
    ),
)

"""Run an image on libsimavr's AVR chips, cycle by cycle. hooks/simavr.c is the process, and counts."""

from __future__ import annotations

from pathlib import Path

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.code import read_code
from baretorch.machines.counts import CountsFile
from baretorch.machines.hooks import program
from baretorch.machines.process import Process
from baretorch.machines.types import Block, Driver, Tool

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
        self._counts = CountsFile(rings=2)
        file = self._counts.file
        numbers = (
            *(code.run, code.returned, *code.home),
            VECTOR_BYTES * chip.counter.irq if chip.counter.irq is not None else DATA,
            code.stacks[0] & DATA,
            file.fileno(),
        )
        line = (str(chip.clock_hz), str(chip.uart.base & DATA), str(chip.uart.baud))
        command = [str(program("simavr.c", "simavr")), board.simavr_mcu, *line, str(image.bin), *map(str, numbers)]
        super().__init__(command, inherit=(file,), keep=(file,))
        self._listens = False  # bytes that come before the image has set up its USART are lost

    def instructions(self) -> tuple[int, ...]:
        return self._counts.ring(0)

    def cycles(self) -> tuple[int, ...]:
        return self._counts.ring(1)

    def blocks(self) -> tuple[Block, ...]:
        return self._counts.blocks()


def find_simavr() -> Path | None:
    """Return the header of the installed library, if there is one."""
    return next((found for folder in HEADERS if (found := folder / "simavr" / "sim_avr.h").is_file()), None)


def need_simavr(board: str) -> None:
    """Raise CompileError with the remedy if it is not installed."""
    if find_simavr() is None:
        raise CompileError(
            f"board {board} needs simavr",
            need="the library libsimavr and its headers",
            try_="`apt-get install libsimavr-dev`",
        )


DRIVER = Driver(
    lambda image, run_symbol, timed: SimavrMachine(image, run_symbol),
    need=lambda board: need_simavr(board.name),
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

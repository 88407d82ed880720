"""Run an Image on an emulated chip or a real board, and return results and instruction counts."""

from __future__ import annotations

from importlib import import_module

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.types import Driver, Machine
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import EMULATORS, Board


def find_driver(emulator: str) -> Driver:
    """Return the driver of one of EMULATORS, which is in the module of this package that has its name."""
    driver: Driver = import_module(f"{__name__}.{emulator}").DRIVER
    return driver


def open_machine(image: Image, run_symbol: str, emulator: str | None = None, timed: bool = False) -> Machine:
    """Boot the image on `emulator`, or on the first of its board's emulators that is installed. `timed` requests the
    time of flash reads from emulators that simulate it, which makes them slower."""
    emulator = choose_emulator(image.board, emulator)
    driver = find_driver(emulator)
    if image.board.usb is not None and not driver.usb:
        able = [name for name in EMULATORS if find_driver(name).usb]
        raise CompileError(
            f"the emulator {emulator} has no USB cable",
            need=f"{' or '.join(able)}, or another console",
            try_="--console uart",
        )
    return driver.start(image, run_symbol, timed)


def choose_emulator(board: Board, emulator: str | None = None) -> str:
    """Return `emulator`, or the first of the board's that is installed. Raise CompileError if it cannot run the
    board, or is not installed."""
    if not board.emulators:
        raise CompileError(f"no emulator runs board {board.name}", have=board.title, try_=_boards_alike(board))
    if emulator is None:
        emulator = next((e for e in board.emulators if find_driver(e).is_installed(board)), board.emulators[0])
    if emulator not in board.emulators:
        raise CompileError(
            f"the emulator {emulator} cannot run board {board.name}", need=f"one of: {', '.join(board.emulators)}"
        )
    find_driver(emulator).need(board)
    return emulator


def _boards_alike(board: Board) -> str:
    """Suggest boards that have an emulator and run the same code. More capable cores run the code of simpler ones."""
    boards = [load_board(name) for name in board_names()]
    emulated = [b for b in boards if b.emulators and b.chip.cpu.gcc_prefix == board.chip.cpu.gcc_prefix]
    same = [b.name for b in emulated if b.chip.cpu.name == board.chip.cpu.name]
    near = [b.name for b in emulated if b.chip.cpu.features == board.chip.cpu.features]
    names = same or near
    if not names:
        return "`baretorch flash` runs it on the board itself"
    kind = f"CPU, {board.chip.cpu.name}" if same else "CPU features"
    return f"use a board with the same {kind}: {', '.join(names)}"

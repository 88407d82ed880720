"""Run an Image on an emulated chip or a real board, and return results and instruction counts."""

from __future__ import annotations

import importlib.util
import shutil

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.types import Machine
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board


def open_machine(image: Image, run_symbol: str, emulator: str | None = None, timed: bool = False) -> Machine:
    """Boot the image on `emulator`, or on the first of its board's emulators that is installed. `timed` asks for what
    reading flash takes, where the emulator can tell: it is slower then."""
    return _open(image, run_symbol, choose_emulator(image.board, emulator), timed)


def choose_emulator(board: Board, emulator: str | None = None) -> str:
    """`emulator`, or the first of the board's that is installed; CompileError if it cannot run the board."""
    if not board.emulators:
        raise CompileError(f"no emulator runs board {board.name}", have=board.title, try_=_boards_alike(board))
    if emulator is None:
        return next((e for e in board.emulators if _installed(e, board)), board.emulators[0])
    if emulator not in board.emulators:
        raise CompileError(
            f"the emulator {emulator} cannot run board {board.name}", need=f"one of: {', '.join(board.emulators)}"
        )
    return emulator


def _open(image: Image, run_symbol: str, emulator: str, timed: bool) -> Machine:
    """Imports where needed: Unicorn's library is large."""
    if emulator == "unicorn":
        from baretorch.machines.unicorn.machine import UnicornMachine

        return UnicornMachine(image, run_symbol, timed=timed)
    if emulator == "rp2040js":
        from baretorch.machines.rp2040js.machine import Rp2040JsMachine

        return Rp2040JsMachine(image, run_symbol)
    if image.board.usb is not None:
        raise CompileError(
            f"the emulator {emulator} has no USB cable",
            need="unicorn or rp2040js, or another console",
            try_="--console uart",
        )
    if emulator == "qemu":
        from baretorch.machines.qemu.machine import QemuMachine

        return QemuMachine(image, run_symbol)
    if emulator == "fvp":
        from baretorch.machines.fvp import FvpMachine

        return FvpMachine(image)
    if emulator == "cluster":
        from baretorch.machines.cluster.machine import ClusterMachine

        return ClusterMachine(image, run_symbol)
    if emulator == "simavr":
        from baretorch.machines.simavr import SimavrMachine

        return SimavrMachine(image, run_symbol)
    from baretorch.machines.native import NativeMachine

    return NativeMachine(image)


def _installed(emulator: str, board: Board) -> bool:
    if emulator == "unicorn":
        return importlib.util.find_spec("unicorn") is not None
    if emulator == "qemu":
        from baretorch.machines.qemu.machine import PROGRAMS

        return shutil.which(PROGRAMS[board.chip.cpu.elf_machine]) is not None
    if emulator == "fvp":
        return board.fvp is not None and shutil.which(board.fvp.program) is not None
    if emulator == "simavr":
        from baretorch.machines.simavr import find_simavr

        return find_simavr() is not None
    if emulator == "rp2040js":
        from baretorch.machines.rp2040js.machine import is_installed

        return is_installed()
    return True


def _boards_alike(board: Board) -> str:
    """Boards that run the same code and have an emulator; the more capable core runs the plainer one's code."""
    boards = [load_board(name) for name in board_names()]
    emulated = [b for b in boards if b.emulators and b.chip.cpu.gcc_prefix == board.chip.cpu.gcc_prefix]
    same = [b.name for b in emulated if b.chip.cpu.name == board.chip.cpu.name]
    near = [b.name for b in emulated if b.chip.cpu.features == board.chip.cpu.features]
    names = same or near
    if not names:
        return "`baretorch flash` runs it on the board itself"
    kind = board.chip.cpu.name if same else "core with the same features"
    return f"build for a board with the same {kind}: {', '.join(names)}"

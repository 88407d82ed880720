"""Run images on QEMU's machines, with an emulated NPU attached from outside."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.firmware.elf import ARM, RISCV
from baretorch.firmware.types import Image
from baretorch.machines.types import Driver, GdbServer, Machine, Tool
from baretorch.targets.types import Board

PROGRAMS = {ARM: "qemu-system-arm", RISCV: "qemu-system-riscv32"}
PACKAGES = {ARM: "qemu-system-arm", RISCV: "qemu-system-misc"}


def find_qemu(board: Board) -> str:
    """Return the program that emulates the board; CompileError with the remedy if it is not installed."""
    machine = board.chip.cpu.elf_machine
    program = shutil.which(PROGRAMS[machine])
    if program is None:
        raise CompileError(
            f"board {board.name} needs QEMU",
            need=f"the program {PROGRAMS[machine]}",
            try_=f"`apt-get install {PACKAGES[machine]}`",
        )
    return program


def _open(image: Image, run_symbol: str, timed: bool) -> Machine:
    from baretorch.machines.qemu.machine import QemuMachine

    return QemuMachine(image, run_symbol)


@contextmanager
def _debug(image: Image, run_symbol: str, path: Path) -> Iterator[GdbServer]:
    from baretorch.machines.gdb import serve, stop_at_faults
    from baretorch.machines.qemu.machine import QemuMachine

    with serve(QemuMachine(image, run_symbol, path), path, stop_at_faults(image.board)) as server:
        yield server


DRIVER = Driver(
    _open,
    is_installed=lambda board: shutil.which(PROGRAMS[board.chip.cpu.elf_machine]) is not None,
    debug=_debug,
    tools=(
        Tool("qemu-system-arm", "program", "emulates the MPS2 and MPS3 boards", "apt-get install qemu-system-arm"),
        Tool("qemu-system-riscv32", "program", "emulates RISC-V boards", "apt-get install qemu-system-misc"),
    ),
)

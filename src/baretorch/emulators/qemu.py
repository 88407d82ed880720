"""QEMU's own machines: Arm's MPS2 and MPS3 boards, the micro:bit and RISC-V's virt."""

from __future__ import annotations

import math
import mmap
import os
import shutil
import struct
import tempfile
from pathlib import Path

from baretorch.emulators.code import read_code
from baretorch.emulators.hooks import shared_library
from baretorch.emulators.process import Process
from baretorch.errors import CompileError
from baretorch.firmware.elf import ARM, RISCV
from baretorch.firmware.types import Image
from baretorch.targets.types import Board

CALL_ROOM = 1 << 12  # of bt_counts in hooks/qemu.c
HISTOGRAM = 8 * (1 + CALL_ROOM)  # its offset there
PROGRAMS = {ARM: "qemu-system-arm", RISCV: "qemu-system-riscv32"}
PACKAGES = {ARM: "qemu-system-arm", RISCV: "qemu-system-misc"}


class QemuMachine(Process):
    """An image on a QEMU machine, with hooks/qemu.c as the plugin that counts."""

    name = "qemu"

    def __init__(self, image: Image, run_symbol: str) -> None:
        program = find_qemu(image.board)
        code = read_code(image, run_symbol)
        self._code = code.addresses
        counts = tempfile.TemporaryFile()  # noqa: SIM115
        counts.truncate(HISTOGRAM + 8 * (len(code.addresses) // 2 + 1))
        self._counts = mmap.mmap(counts.fileno(), 0)
        ends = os.pipe()
        lifeline, held = os.fdopen(ends[0], "rb"), os.fdopen(ends[1], "wb")
        plugin = (
            f"{_escaped(shared_library('qemu.c'))},run={code.run},returned={code.returned},"
            f"origin={code.addresses.start},bytes={len(code.addresses)},"
            f"counts={counts.fileno()},lifeline={lifeline.fileno()}"
        )
        with lifeline, counts:
            command = [program, *_machine(image.board), "-kernel", str(image.elf), "-plugin", plugin]
            super().__init__(command, inherit=(counts, lifeline), keep=(held,))
        self._listens = False  # bytes that reach QEMU's UARTs before the image has set them up are lost

    def instructions(self) -> tuple[int, ...]:
        (count,) = struct.unpack_from("<Q", self._counts)
        calls = struct.unpack_from(f"<{CALL_ROOM}Q", self._counts, 8)
        return tuple(calls[i % CALL_ROOM] for i in range(max(0, count - CALL_ROOM), count))

    def histogram(self) -> dict[int, int]:
        """How often the last call of the run function executed the instruction at each address."""
        counts = struct.unpack_from(f"<{len(self._code) // 2}Q", self._counts, HISTOGRAM)
        return {self._code.start + 2 * i: n for i, n in enumerate(counts) if n}


def find_qemu(board: Board) -> str:
    """The program that emulates the board; CompileError with the remedy if it is not installed."""
    machine = board.chip.cpu.elf_machine
    program = shutil.which(PROGRAMS[machine])
    if program is None:
        raise CompileError(
            f"board {board.name} needs QEMU",
            need=f"the program {PROGRAMS[machine]}",
            try_=f"`apt-get install {PACKAGES[machine]}`",
        )
    return program


def _machine(board: Board) -> tuple[str, ...]:
    """One instruction takes the power of two of nanoseconds that is nearest to a clock cycle: same run, same ticks."""
    shift = max(0, round(math.log2(1e9 / board.chip.clock_hz)))
    console = ("-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console", "-echr", "256")
    bare = ("-bios", "none") if board.chip.boot == "riscv" else ()
    quiet = ("-nodefaults", "-display", "none", "-monitor", "none")
    return ("-M", board.qemu_machine or "", *bare, *quiet, *console, "-icount", f"shift={shift}")


def _escaped(path: Path) -> str:
    """A path inside an option of QEMU, where commas separate."""
    return str(path).replace(",", ",,")

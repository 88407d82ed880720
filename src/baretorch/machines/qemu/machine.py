"""Run an image on one of QEMU's machines: a process with a plugin that counts."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.firmware.elf import ARM, RISCV
from baretorch.firmware.types import Image
from baretorch.machines.code import read_code
from baretorch.machines.counts import CountsFile
from baretorch.machines.hooks import shared_library
from baretorch.machines.process import HasFileno, Process
from baretorch.machines.qemu.npu import AttachedNpu
from baretorch.machines.qemu.npu import NpuPlace as NpuPlace
from baretorch.machines.types import Block
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.targets.types import Board

PROGRAMS = {ARM: "qemu-system-arm", RISCV: "qemu-system-riscv32"}
PACKAGES = {ARM: "qemu-system-arm", RISCV: "qemu-system-misc"}
STARTS = {
    "mps3-an547": 0x10000000
}  # the address from which a machine's core loads its first stack pointer and program counter


class QemuMachine(Process):
    """An image on a QEMU machine, with hooks/qemu.c as the plugin that counts."""

    name = "qemu"

    def __init__(self, image: Image, run_symbol: str, gdb: Path | None = None) -> None:
        """Start QEMU. At the socket `gdb` it waits for a debugger before the first instruction."""
        program = find_qemu(image.board)
        code = read_code(image, run_symbol)
        self._counts = CountsFile(rings=1)
        counts = self._counts.file
        ends = os.pipe()
        lifeline, held = os.fdopen(ends[0], "rb"), os.fdopen(ends[1], "wb")
        home = ",".join(f"home{i}={address}" for i, address in enumerate(code.home))
        plugin = (
            f"{_escape(shared_library('qemu.c'))},thumb={int(code.elf.machine == ARM)},"
            f"run={code.run},returned={code.returned},{home},"
            f"counts={counts.fileno()},lifeline={lifeline.fileno()}"
        )
        first = tempfile.NamedTemporaryFile()  # noqa: SIM115
        with lifeline, counts:
            command = [program, *_machine(image.board), "-kernel", str(image.elf), "-plugin", plugin]
            if (start := _starts_elsewhere(image.board)) is not None:
                first.write(code.elf.bytes_at(image.board.chip.memory(image.board.chip.code).origin, 8))
                first.flush()
                command += ["-device", f"loader,file={_escape(Path(first.name))},addr={start:#x},force-raw=on"]
            npu = _npu(image.board) if gdb is None else None
            if gdb is not None:
                command += ["-S", "-gdb", f"unix:{_escape(gdb)},server=on,wait=off"]
            elif npu is not None:
                command += npu.options
            files: list[HasFileno] = [counts, lifeline, *(npu.files if npu is not None else ())]
            super().__init__(command, inherit=files, keep=(held, first, *([npu] if npu else ())), apart=gdb is not None)
            if npu is not None:
                npu.start()
                self._companion = npu
        self._listens = False  # bytes that reach QEMU's UARTs before the image has set them up are lost

    def instructions(self) -> tuple[int, ...]:
        return self._counts.ring(0)

    def blocks(self) -> tuple[Block, ...]:
        return self._counts.blocks()


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


def _machine(board: Board) -> tuple[str, ...]:
    """Return QEMU's arguments for the machine. An instruction takes the power of two of nanoseconds that is nearest to
    a clock cycle, so that equal runs take equal times."""
    shift = max(0, round(math.log2(1e9 / board.chip.clock_hz)))
    console = ("-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console", "-echr", "256")
    bare = ("-bios", "none") if board.chip.boot == "riscv" else ()
    quiet = ("-nodefaults", "-display", "none", "-monitor", "none")
    return ("-M", board.qemu_machine or "", *bare, *quiet, *console, "-icount", f"shift={shift}")


def _starts_elsewhere(board: Board) -> int | None:
    """Return the machine's start address if it differs from the chip's. The machine gets the first two words of the
    image there, as if its core knew the address of the image's vectors."""
    start = STARTS.get(board.qemu_machine or "")
    return None if start == board.chip.memory(board.chip.code).origin else start


def _npu(board: Board) -> AttachedNpu | None:
    """Return the chip's NPU, which none of QEMU's machines has."""
    npu, chip = board.chip.npu, board.chip
    if npu is None:
        return None
    reached = (chip.memory(name) for name in dict.fromkeys((npu.ram, npu.constants)))
    place = NpuPlace(npu.base, npu.irq, tuple((m.origin, m.size) for m in reached))
    return AttachedNpu(ACCELERATORS_BY_NAME[npu.accelerator], place, board.qemu_machine or "")


def _escape(path: Path) -> str:
    """Escape a path for an option of QEMU, where commas separate."""
    return str(path).replace(",", ",,")

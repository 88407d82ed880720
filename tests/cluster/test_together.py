"""Barrier, DMA and GEMM as C uses them, on all cores of our chips; and what is reported where one is forgotten."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from baretorch.emulators.cluster.machine import config_of
from baretorch.emulators.cluster.simulator import Fault, Simulator, Stop
from baretorch.emulators.code import Code
from baretorch.firmware.chunks import loaded
from baretorch.firmware.elf import Elf, read_elf
from baretorch.firmware.toolchain import find_toolchain
from baretorch.firmware.tools import run_tool
from baretorch.targets.boards import load_board
from baretorch.targets.header import board_header
from baretorch.targets.linker import linker_script
from baretorch.targets.runtime import RUNTIME
from baretorch.targets.types import Board

HERE = Path(__file__).parent


def built(board: Board, folder: Path, *defines: str) -> Elf:
    toolchain = find_toolchain(board, "gcc")
    (folder / "bt_board.h").write_text(board_header(board))
    (folder / "link.ld").write_text(linker_script(board))
    flags = [*board.chip.cpu.gcc, "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    includes = [f"-I{RUNTIME}", "-I."]
    sources = [str(HERE / "start.S"), str(HERE / "together.c")]
    link = ["-nostdlib", "-T", "link.ld", "-Wl,--nmagic"]
    command = [*toolchain.compiler, *flags, *defines, *includes, *sources, *link, "-o", "together.elf"]
    done = run_tool(command, folder)
    assert done.returncode == 0, done.stderr
    return read_elf((folder / "together.elf").read_bytes())


def started(board: Board, elf: Elf, library: ctypes.CDLL | None = None) -> Simulator:
    cluster = board.chip.cluster
    assert cluster is not None
    nowhere = Code(elf, range(0), range(0), 0, 0, (0,) * 4, (0,) * 4, (), (0, 0))
    simulator = Simulator(config_of(board.chip, cluster, nowhere, cluster.cores), library)
    for chunk in loaded(elf):
        assert simulator.load(chunk.address, chunk.data)
    return simulator


def test_cores_and_units_agree(tmp_path: Path) -> None:
    board = load_board("cluster8")
    simulator = started(board, built(board, tmp_path))
    assert simulator.run(100_000) is Stop.HAS_OUTPUT, simulator.report()
    assert simulator.output() == b"y"


@pytest.mark.parametrize(("forgotten", "fault"), [("FORGET_DMA", Fault.IN_TRANSFER), ("FORGET_BARRIER", Fault.RACE)])
def test_what_is_forgotten_is_reported(tmp_path: Path, forgotten: str, fault: Fault) -> None:
    board = load_board("cluster8")
    simulator = started(board, built(board, tmp_path, f"-D{forgotten}"))
    assert simulator.run(100_000) is Stop.FAULT
    assert simulator.report().fault is fault

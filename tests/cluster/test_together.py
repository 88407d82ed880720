"""Barrier, DMA and GEMM as C uses them, on all cores of our chips; and what is reported where one is forgotten."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.elf import Elf, read_elf
from baretorch.firmware.toolchain import find_toolchain
from baretorch.firmware.tools import run_tool
from baretorch.machines.cluster.machine import config_of
from baretorch.machines.cluster.simulator import ClusterFault, ClusterStop, Simulator
from baretorch.machines.code import Code
from baretorch.targets.boards import load_board
from baretorch.targets.linker import linker_script
from baretorch.targets.runtime import RUNTIME, board_header
from baretorch.targets.types import Board
from tests.cluster.judge import judge, missing
from tests.cluster.requests import events, peek, trace

HERE = Path(__file__).parent
WHY = missing()
MACS = 64 * 32 * 256  # of product.c


def built(board: Board, folder: Path, *defines: str, program: str = "together.c") -> Elf:
    toolchain = find_toolchain(board, "gcc")
    (folder / "bt_board.h").write_text(board_header(board))
    (folder / "link.ld").write_text(linker_script(board))
    flags = [*board.chip.cpu.gcc, "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    includes = [f"-I{RUNTIME}", f"-I{RUNTIME.parent / 'kernels'}", "-I."]
    sources = [str(HERE / "start.S"), str(HERE / program)]
    link = ["-nostdlib", "-T", "link.ld", "-Wl,--nmagic"]
    command = [*toolchain.compiler, *flags, *defines, *includes, *sources, *link, "-o", "together.elf"]
    done = run_tool(command, folder)
    assert done.returncode == 0, done.stderr
    return read_elf((folder / "together.elf").read_bytes())


def with_cores(board: Board, cores: int) -> Board:
    cluster = board.chip.cluster
    assert cluster is not None
    return replace(board, chip=replace(board.chip, cluster=replace(cluster, cores=cores)))


def started(board: Board, elf: Elf) -> Simulator:
    cluster = board.chip.cluster
    assert cluster is not None
    nowhere = Code(elf, range(0), range(0), 0, 0, (0,) * 4, (0,) * 4, (), (), (0, 0))
    simulator = Simulator(config_of(board.chip, cluster, nowhere, cluster.cores))
    for chunk in load_chunks(elf):
        assert simulator.load(chunk.address, chunk.data)
    return simulator


def test_cores_and_units_agree(tmp_path: Path) -> None:
    board = load_board("cluster8")
    simulator = started(board, built(board, tmp_path))
    assert simulator.run(100_000) is ClusterStop.HAS_OUTPUT, simulator.report()
    assert simulator.output() == b"y"


@pytest.mark.parametrize(
    ("forgotten", "fault"),
    [
        ("FORGET_DMA", ClusterFault.IN_TRANSFER),
        ("FORGET_GEMM", ClusterFault.IN_TRANSFER),
        ("FORGET_BARRIER", ClusterFault.RACE),
    ],
)
def test_what_is_forgotten_is_reported(tmp_path: Path, forgotten: str, fault: ClusterFault) -> None:
    board = load_board("cluster8")
    simulator = started(board, built(board, tmp_path, f"-D{forgotten}"))
    assert simulator.run(100_000) is ClusterStop.FAULT
    assert simulator.report().fault is fault


def product_cycles(simulator: Simulator, elf: Elf) -> int:
    (cycles,) = struct.unpack("<I", peek(simulator, elf.symbol("bt_product_cycles").address, 4))
    return int(cycles)


def test_a_product_on_eight_cores(tmp_path: Path) -> None:
    """The goal of 16 products per cycle, with requantization and the barrier."""
    board = load_board("cluster8")
    elf = built(board, tmp_path, program="product.c")
    simulator = started(board, elf)
    assert simulator.run(1_000_000) is ClusterStop.HAS_OUTPUT, simulator.report()
    assert simulator.output() == b"y"
    assert MACS / product_cycles(simulator, elf) > 16, product_cycles(simulator, elf)


@pytest.mark.skipif(WHY is not None, reason=WHY or "")
@pytest.mark.parametrize(
    ("program", "cores", "defines"),
    [
        ("product.c", 1, ["-DROWS=8"]),
        pytest.param("product.c", 8, [], marks=pytest.mark.slow),
        pytest.param("together.c", 8, [], marks=pytest.mark.slow),
    ],
)
def test_the_rtl_takes_the_same_cycles(program: str, cores: int, defines: list[str], tmp_path: Path) -> None:
    board = with_cores(load_board("cluster8"), cores)
    elf = built(board, tmp_path, *defines, program=program)
    ours, rtl = started(board, elf), started(board, elf)
    for simulator in (ours, rtl):
        trace(simulator, 1 << 20, registers=True)  # the RTL asks at a barrier in every cycle
    ours.run(1_000_000)
    judge(rtl, 1_000_000, 1)
    (said,), (told,) = ([e for e in events(s) if e.write and e.address == board.chip.uart.base] for s in (ours, rtl))
    assert said == told and chr(said.data) == "y"
    for memory in board.chip.memories:
        assert peek(ours, memory.origin, memory.size) == peek(rtl, memory.origin, memory.size)
    if program == "product.c":
        assert product_cycles(ours, elf) == product_cycles(rtl, elf) > 0

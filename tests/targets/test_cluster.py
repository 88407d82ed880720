"""The [cluster] tables of the shipped chips are read as written, and every mistake has an error text."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import load_board
from baretorch.targets.parts import Cluster, Dma, EventUnit, Gemm
from baretorch.targets.runtime import board_header
from baretorch.targets.toml import BOARDS

CHIP = (BOARDS / "chips" / "cluster8.toml").read_text()
BOARD = (BOARDS / "cluster8.toml").read_text().replace('"cluster8"', '"mychip"')


def test_cluster8() -> None:
    board = load_board("cluster8")
    assert board.chip.cluster == Cluster(
        cores=8,
        scratchpad="L1",
        banks=16,
        slow_cycles=10,
        register_cycles=1,
        events=EventUnit(0x1A104000, 0),
        stack_bytes=768,
        dma=Dma(0x1A108000, 8, 20, 8),
        gemm=Gemm(0x1A10C000, 8, 8, 4, 16, 16, 4, 4, 1),
    )
    assert board.chip.cpus == "8 × cv32e40p"
    assert "#define BT_DMA_BASE 0x1a108000u" in board_header(board)


def test_another_has_other_sizes_and_no_gemm_unit() -> None:
    board = load_board("cluster4-soc")
    cluster = board.chip.cluster
    assert cluster is not None and (cluster.cores, cluster.banks, cluster.gemm) == (4, 8, None)
    assert "BT_GEMM_BASE" not in board_header(board)


ERRORS = {
    "cores": (
        "cores = 8",
        "cores = 9",
        "error: cores = 9 is out of range\n  at    mychip.toml [cluster]\n  need  1 to 8",
    ),
    "banks": (
        "banks = 16",
        "banks = 0",
        "error: banks = 0 is out of range\n  at    mychip.toml [cluster]\n  need  1 to 64",
    ),
    "banks_whole": (
        "banks = 16",
        "banks = 15",
        "error: L1 cannot be cut into 15 banks\n  at    mychip.toml\n  have  65536 bytes\n"
        "  need  a whole number of words in each bank",
    ),
    "scratchpad": (
        'scratchpad = "L1"',
        'scratchpad = "CODE"',
        "error: scratchpad = 'CODE' does not name a ram memory\n  at    mychip.toml [cluster]\n  need  one of: L1, L2",
    ),
    "slow": (
        "slow_cycles = 10",
        "slow_cycles = 2000000",
        "error: slow_cycles = 2000000 is out of range\n  at    mychip.toml [cluster]\n  need  0 to 1048576",
    ),
    "events": (
        "[cluster.events]\nbase = 0x1a104000\nbarrier_cycles = 0\n",
        "",
        "error: events is missing\n  at    mychip.toml [cluster]\n  need  events = a table",
    ),
    "base": (
        "base = 0x1a108000",
        "base = 0x20000000",
        "error: cluster.dma register 0x20000000 is outside peripherals\n  at    mychip.toml\n"
        "  need  a range such as [0x20000000, 0x1000]",
    ),
    "same_base": (
        "base = 0x1a10c000",
        "base = 0x1a108000",
        "error: the registers of cluster.dma and cluster.gemm overlap\n  at    mychip.toml\n"
        "  have  0x1a108000 and 0x1a108000\n  need  128 bytes for each",
    ),
    "near_base": (
        "base = 0x1a104000",
        "base = 0x1a10007c",
        "error: the registers of uart and cluster.events overlap\n  at    mychip.toml\n"
        "  have  0x1a100000 and 0x1a10007c\n  need  128 bytes for each",
    ),
    "channels": (
        "channels = 8",
        "channels = 17",
        "error: channels = 17 is out of range\n  at    mychip.toml [cluster] [dma]\n  need  1 to 16",
    ),
    "gemm": (
        "depth = 4",
        "depth = 0",
        "error: depth = 0 is out of range\n  at    mychip.toml [cluster] [gemm]\n  need  1 to 1024",
    ),
    "key": (
        "register_cycles = 1",
        "register_cycles = 1\nturbo = 1",
        "error: unknown key 'turbo'\n  at    mychip.toml [cluster]\n  need  one of: banks, cores, dma, events, gemm, "
        "register_cycles, scratchpad, slow_cycles, stack_bytes",
    ),
    "uart": (
        'driver = "ns16550"',
        'driver = "pl011"',
        "error: the emulator cluster has another console\n  at    mychip.toml\n"
        '  have  [uart] driver = "pl011"\n  need  driver = "ns16550", and no irq',
    ),
    "boot": (
        'boot = "riscv"',
        'boot = "vectors"',
        "error: [cluster] is for RISC-V, and includes the number of cores\n"
        "  at    mychip.toml\n"
        '  have  boot = "vectors"',
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, wanted = ERRORS[name]
    assert old in CHIP
    assert load(tmp_path, monkeypatch, CHIP.replace(old, new)) == wanted


def test_no_cluster_no_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(tmp_path, monkeypatch, CHIP[: CHIP.index("[cluster]")]) == (
        "error: emulator cluster does not support the chip 'mychip'\n"
        "  at    mine.toml\n"
        "  need  [cluster] in its TOML: cores, scratchpad, and the units"
    )


def load(folder: Path, monkeypatch: pytest.MonkeyPatch, chip: str) -> str:
    monkeypatch.chdir(folder)
    Path("mine.toml").write_text(BOARD)
    Path("mychip.toml").write_text(chip)
    with pytest.raises(CompileError) as caught:
        load_board("mine.toml")
    return caught.value.render()

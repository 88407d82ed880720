"""[npu] of a chip's TOML: read, checked, and part of the image."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.targets.boards import load_board
from baretorch.targets.runtime import board_header, runtime_sources
from tests.targets.test_own_boards import BOARD, CHIP, _load_own

PLAIN = CHIP.replace("[[0x40000000, 0x1000]]", "[[0x40000000, 0x1000], [0x48102000, 0x1000]]")
NPU = """
[npu]
driver = "ethosu"
accelerator = "ethos-u55-128"
base = 0x48102000
system_config = "Ethos_U55_High_End_Embedded"
memory_mode = "Shared_Sram"
ram = "SRAM"
constants = "FLASH"
"""


def test_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _load_own(tmp_path, monkeypatch, BOARD, PLAIN + NPU) == "mine"
    board = load_board("mine.toml")
    npu = board.chip.npu
    assert npu is not None and (npu.accelerator, npu.ram, npu.constants) == ("ethos-u55-128", "SRAM", "FLASH")
    header = board_header(board)
    assert "#define BT_NPU_BASE 0x48102000u\n" in header and "#define BT_NPU_CONSTANTS_APART 1\n" in header
    assert "BT_NPU_IRQ" not in header
    assert "ethosu.c" in {path.name for path in runtime_sources(board)}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            "ethos-u55-128",
            "ethos-u55-129",
            "error: unknown accelerator 'ethos-u55-129'\n"
            "  at    chippy.toml [npu]\n"
            "  need  one of: ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256, ethos-u65-256, ethos-u65-512, "
            "ethos-u85-128, ethos-u85-256, ethos-u85-512, ethos-u85-1024, ethos-u85-2048\n"
            "  try   did you mean 'ethos-u55-128'?",
        ),
        (
            '"Shared_Sram"',
            '"--optimise"',
            "error: invalid memory_mode '--optimise'\n"
            "  at    chippy.toml [npu]\n"
            "  need  letters, digits and _; `vela --list-configs Arm/vela.ini` lists them",
        ),
        (
            'ram = "SRAM"',
            'ram = "FLASH"',
            "error: ram = 'FLASH' does not name a ram memory\n  at    chippy.toml [npu]\n  need  one of: SRAM",
        ),
        (
            'constants = "FLASH"',
            'constants = "DDR"',
            "error: constants = 'DDR' does not name a ram or code memory\n"
            "  at    chippy.toml [npu]\n"
            "  need  one of: SRAM, FLASH",
        ),
        (
            "0x48102000\n",
            "0x58102000\n",
            "error: npu register 0x58102000 is outside peripherals\n"
            "  at    chippy.toml\n"
            "  need  a range such as [0x58102000, 0x1000]",
        ),
        (
            'constants = "FLASH"\n',
            'constants = "FLASH"\nirq = 56\n',
            "error: [npu] has an irq, and the core does not sleep\n"
            "  at    chippy.toml\n"
            "  need  [interrupts], [alarm], and [uart] with an irq of its own; or no irq: the core polls",
        ),
    ],
)
def test_refused(before: str, after: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert before in NPU
    assert _load_own(tmp_path, monkeypatch, BOARD, PLAIN + NPU.replace(before, after)) == text

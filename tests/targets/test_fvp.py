"""[fvp] of a board's TOML: names, and nothing that could be another program or another option."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.targets.boards import load_board
from tests.targets.test_own_boards import BOARD, CHIP, _load_own

FVP = """
[fvp]
program = "FVP_MPS2_Cortex-M4"
terminal = "fvp_mps2.telnetterminal0"
vectors = ["armcortexm4ct.INITVTOR"]
"""
EMULATED = BOARD.replace('emulators = ["qemu"]', 'emulators = ["fvp"]')


def test_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EMULATED != BOARD
    assert _load_own(tmp_path, monkeypatch, EMULATED + FVP, CHIP) == "mine"
    fvp = load_board("mine.toml").fvp
    assert fvp is not None and (fvp.program, fvp.npu, fvp.on) == ("FVP_MPS2_Cortex-M4", None, ())


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            '"FVP_MPS2_Cortex-M4"',
            '"rm"',
            "error: invalid program 'rm'\n"
            "  at    mine.toml [fvp]\n"
            '  need  the name of a program of Arm\'s, such as "FVP_Corstone_SSE-320"',
        ),
        (
            '"FVP_MPS2_Cortex-M4"',
            '"FVP_/../../bin/rm"',
            "error: invalid program 'FVP_/../../bin/rm'\n"
            "  at    mine.toml [fvp]\n"
            '  need  the name of a program of Arm\'s, such as "FVP_Corstone_SSE-320"',
        ),
        (
            "armcortexm4ct.INITVTOR",
            "uart0.out_file=/etc/passwd",
            "error: invalid vectors 'uart0.out_file=/etc/passwd'\n"
            "  at    mine.toml [fvp]\n"
            "  need  letters, digits and _ . -, the first a letter or digit",
        ),
        (
            FVP,
            "",
            "error: emulator fvp needs [fvp]\n"
            "  at    mine.toml\n"
            '  need  such as program = "FVP_Corstone_SSE-320", terminal = "mps4_board.telnetterminal0"',
        ),
    ],
)
def test_refused(before: str, after: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert before in FVP
    assert _load_own(tmp_path, monkeypatch, EMULATED + FVP.replace(before, after), CHIP) == text

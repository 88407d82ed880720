"""Every model of the zoo on every CPU, with both toolchains; on boards whose CPU others have too, some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import board_names, load_board
from tests.zoo.zoo import MODELS, check, check_shortage, run

BOARDS = [name for name in board_names() if load_board(name).emulators]
# Boards with a CPU of another one run the same code: what is their own is memory, start-up and console.
SOME = ("sine", "kws", "streaming_gru", "mobilenet_v2")
FULL = (
    *("arduino-mega", "arduino-uno", "cluster8", "corstone-320", "host", "microbit"),
    *("mps2-an385", "mps2-an385-v6m", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547"),
    *("virt-hazard3", "virt-rv32"),
)
TWINS = tuple(name for name in BOARDS if name not in FULL)


def test_every_cpu_has_a_board_with_all_models() -> None:
    cpus = [load_board(name).chip.cpu.name for name in BOARDS if name not in TWINS]
    assert sorted(cpus) == sorted({load_board(name).chip.cpu.name for name in BOARDS})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board", "toolchain"),
    [
        (name, board, toolchain)
        for name in MODELS
        for board in BOARDS
        for toolchain in ("gcc", "zig")
        if (toolchain == "gcc" or load_board(board).chip.cpu.zig is not None) and (board not in TWINS or name in SOME)
    ],
)
def test_model_on_board(name: str, board: str, toolchain: str, tmp_path: Path) -> None:
    """It runs like PyTorch, or the error says how many bytes are missing."""
    try:
        facts = run(name, board, toolchain, tmp_path)
    except CompileError as error:
        check_shortage(error, name, board)
    else:
        check(facts)

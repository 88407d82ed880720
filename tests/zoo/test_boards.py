"""Every model of the zoo on every board where it fits, with both toolchains."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import board_names, load_board
from tests.zoo.zoo import MODELS, check, check_shortage, run

BOARDS = [name for name in board_names() if load_board(name).emulators]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "toolchain"),
    [(b, t) for b in BOARDS for t in ("gcc", "zig") if t == "gcc" or load_board(b).chip.cpu.zig is not None],
)
@pytest.mark.parametrize("name", MODELS)
def test_model_on_board(name: str, board: str, toolchain: str, tmp_path: Path) -> None:
    """It runs like PyTorch, or the error says how many bytes are missing."""
    try:
        facts = run(name, board, toolchain, tmp_path)
    except CompileError as error:
        check_shortage(error, name, board)
    else:
        check(facts)

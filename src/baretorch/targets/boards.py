"""Load boards and chips from TOML. A mistake is an error with its place and a remedy."""

from __future__ import annotations

import re
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.options import Console
from baretorch.targets.checks import check_board, check_chip
from baretorch.targets.toml import BOARDS, raise_unknown, read_key, read_record, read_table, shown_path
from baretorch.targets.types import Board, Chip

_CHIPS = BOARDS / "chips"

# What to do for boards that have no TOML here: by the beginning of their names.
IN_SDKS = {
    "esp": "`baretorch project MODEL --sdk esp-idf --out DIR` writes portable C for any target of ESP-IDF",
}


def board_names() -> tuple[str, ...]:
    """Return the names of the boards that come with Baretorch, sorted."""
    return tuple(sorted(path.stem for path in BOARDS.glob("*.toml")))


def load_board(name_or_path: str) -> Board:
    """Load the board of that name, or the one described by the user's own TOML file."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if name_or_path not in board_names():
            near = next((text for prefix, text in IN_SDKS.items() if name_or_path.lower().startswith(prefix)), None)
            raise_unknown("board", name_or_path, board_names(), at=None, try_=near)
        path = BOARDS / f"{name_or_path}.toml"
    table = read_table(path)
    _check_name("board", path.stem, table.where)
    chip = _load_chip(read_key(table, Board, "chip"), path)
    console = Console.UART if chip.usb is None else Console.USB
    board = read_record(table, Board, name=path.stem, chip=chip, console=console)
    check_board(board, table.where)
    return board


def _load_chip(name: str, board: Path) -> Chip:
    """Load the chip that a board names: from a TOML next to the user's board, or from the shipped ones."""
    shipped = tuple(sorted(path.stem for path in _CHIPS.glob("*.toml")))
    _check_name("chip", name, shown_path(board))
    own = board.with_name(f"{name}.toml")
    if board.parent != BOARDS and own != board and own.is_file():
        table = read_table(own)
    elif name in shipped:
        table = read_table(_CHIPS / f"{name}.toml")
    else:
        raise_unknown("chip", name, shipped, at=shown_path(board))
    chip = read_record(table, Chip, name=name)
    check_chip(chip, table.where)
    return chip


def _check_name(what: str, name: str, where: str) -> None:
    """Check a name of a board or chip: it comes from a file's name, and becomes part of other files' names."""
    if not re.fullmatch(r"\w[\w .+-]*", name) or len(name) > 100:
        raise CompileError(
            f"invalid {what} name {name[:100]!r}" + ("…" if len(name) > 100 else ""),
            at=where,
            need="at most 100 letters, digits, spaces and _ . + -, the first a letter or digit",
        )

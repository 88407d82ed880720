"""Tables of the terminal: what they leave out where it is narrow."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from baretorch.report.terminal.layout import Narrowing, columns


@pytest.mark.parametrize(
    ("width", "row"), [(80, ["a_long_name", "fits", "████████", "1 %"]), (30, ["a_long_name", "fits", "1 %"])]
)
def test_a_narrow_terminal_shows_fewer_columns(width: int, row: list[str]) -> None:
    table = columns("board", "verdict", "flash", "#")
    table.add_row("a_long_name", "fits", "████████", "1 %")
    out = StringIO()
    Console(file=out, width=width).print(Narrowing(table, [(2,), (3,)]))
    titles, cells = out.getvalue().splitlines()
    assert titles.split() == ["board", "verdict", "flash"] and cells.split() == " ".join(row).split()

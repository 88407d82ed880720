"""The layouts of everything that the terminal shows: tables, grids of labels or figures, warnings, paths."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.table import Table
from rich.text import Text

from baretorch.escape import line

BAR = 16  # columns of a full bar


def columns(*titles: str, apart: int = 2) -> Table:
    """Return a table without lines. Titles that begin with # head columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0), header_style="bold")
    for title in titles:
        if title.startswith("#"):
            table.add_column(title.removeprefix("#"), justify="right", no_wrap=True)
        else:
            table.add_column(title, overflow="fold")
    return table


def label_grid(width: int = 9) -> Table:
    """Return a grid of rows with a label, in a column of at least `width`, and a text."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", min_width=width)
    table.add_column(overflow="fold")
    return table


def figure_grid(bars: bool = False) -> Table:
    """Return a grid of rows with a title, a number, with `bars` a bar, and a note."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    if bars:
        table.add_column()
    table.add_column(overflow="fold")
    return table


def path_text(path: Path) -> Text:
    return Text(str(path), overflow="fold", style="cyan")


def warnings(texts: Iterable[str]) -> list[Text]:
    return [Text.assemble(("warning: ", "bold yellow"), line(text)) for text in texts]

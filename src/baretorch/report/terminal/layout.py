"""The layouts of everything that the terminal shows: tables, grids of labels or figures, warnings, paths."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from baretorch.escape import line

BAR = 16  # columns of a full bar

Screen: TypeAlias = RenderableType


def plain_rows(screen: Screen, width: int) -> list[str]:
    """Return what a terminal without colours shows, as lines without trailing blanks."""
    text = StringIO()
    Console(file=text, width=width, highlight=False, emoji=False, no_color=True).print(screen)
    return [row.rstrip() for row in text.getvalue().splitlines()]


def columns(*titles: str, apart: int = 2) -> Table:
    """Return a table without lines. Titles that begin with # head columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0), header_style="bold")
    for title in titles:
        if title.startswith("#"):
            table.add_column(title.removeprefix("#"), justify="right", no_wrap=True)
        else:
            table.add_column(title, overflow="fold")
    return table


@dataclass(frozen=True)
class Narrowing:
    """A table that leaves out columns, by their numbers, in this order, until the others fit the terminal: names are
    neither cut nor wrapped as long as there is something to leave out."""

    table: Table
    drops: Sequence[tuple[int, ...]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, gone = self.table, set[int]()
        wide = options.update(width=1 << 16)
        for drop in self.drops:
            if Measurement.get(console, wide, table).maximum <= options.max_width:
                break
            gone.update(drop)
            table = _without(self.table, gone)
        yield table


def _without(table: Table, gone: Collection[int]) -> Table:
    """Return a table without some columns. The title of one that is left out moves to the next if that has none."""
    made, title = copy(table), ""
    made.columns = []
    for i, column in enumerate(table.columns):
        if i in gone:
            title = str(column.header)
            continue
        header = column.header or title
        made.columns.append(replace(column, header=header, _index=len(made.columns)))
        title = ""
    return made


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

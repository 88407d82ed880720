"""The memory worksheet for the terminal: what takes flash and RAM, and whether it fits."""

from __future__ import annotations

from rich.table import Table

from baretorch.escape import markup
from baretorch.measure.numbers import bar, capacity, share
from baretorch.measure.worksheet import Worksheet
from baretorch.targets.types import Board

BAR = 24


def worksheet_table(sheet: Worksheet) -> Table:
    """Two accounts with a bar per item; bars are shares of what is used, so that small images show something."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    table.add_column(overflow="fold")
    for account in (sheet.flash, sheet.ram):
        size = f"{share(account.used, account.memory.size)} of {capacity(account.memory.size)} {account.memory.name}"
        table.add_row(f"[bold]{account.kind}[/]", f"[bold]{account.used:,}[/]", size, verdict(account.room))
        for name, count in account.items:
            drawn = bar(count, account.used, BAR)
            table.add_row(f"  {name}", f"{count:,}", f"[cyan]{drawn}[/]", share(count, account.used or 1))
    return table


def boards_table(rows: list[Worksheet | tuple[Board, str]]) -> Table:
    """Return one row per board: whether the model fits and by how much, or why that is not known."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("board", "CPU", "", "flash used", "flash left", "RAM used", "RAM left"):
        table.add_column(title, justify="right" if "used" in title or "left" in title else "left", no_wrap=True)
    for row in rows:
        if not isinstance(row, Worksheet):
            board, reason = row
            table.add_row(board.name, board.chip.cpu.name, f"[yellow]{markup(reason)}[/]")
            continue
        rooms = [row.flash.room, row.ram.room]
        left = [f"{room:,}" if room >= 0 else f"[red]{room:,}[/]" for room in rooms]
        word = "[green]fits[/]" if row.fits else "[red]does not fit[/]"
        cells = (f"{row.flash.used:,}", left[0], f"{row.ram.used:,}", left[1])
        table.add_row(row.board.name, row.board.chip.cpu.name, word, *cells)
    return table


def verdict(room: int) -> str:
    return f"[green]fits, {room:,} bytes left[/]" if room >= 0 else f"[red]{-room:,} bytes too small[/]"

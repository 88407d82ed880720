"""The memory worksheet: what an image takes of flash and RAM, item by item, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from baretorch.escape import markup
from baretorch.firmware.elf import read_elf
from baretorch.firmware.fit import needed
from baretorch.firmware.types import Image
from baretorch.measure.numbers import bar, capacity, share
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board

BAR = 24


@dataclass(frozen=True)
class Account:
    """One memory: what takes its bytes. `room` is negative where it is too small."""

    kind: str  # "flash" or "RAM"
    memory: MemoryBank
    items: tuple[tuple[str, int], ...]
    room: int

    @property
    def used(self) -> int:
        return sum(count for _, count in self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "memory": self.memory.name,
            "size": self.memory.size,
            "used": self.used,
            "room": self.room,
            "items": dict(self.items),
        }


@dataclass(frozen=True)
class Worksheet:
    """An image's bytes on a board."""

    board: Board
    flash: Account
    ram: Account

    @property
    def fits(self) -> bool:
        return self.flash.room >= 0 and self.ram.room >= 0

    def to_json(self) -> dict[str, Any]:
        flash, ram = self.flash.to_json(), self.ram.to_json()
        return {"board": self.board.name, "fits": self.fits, "flash": flash, "ram": ram}


def make_worksheet(board: Board, image: Image) -> Worksheet:
    """The worksheet of an image that was built for a board like it in which everything fits."""
    chip, flash, ram = board.chip, image.flash, image.ram
    code, data = chip.memory(chip.code), chip.memory(chip.data)
    flash_items = (
        ("model code", flash.model_code),
        ("runtime code", flash.code - flash.model_code),
        ("weights", flash.weights),
    )
    copied = [(what, size) for what, size in (("weights", ram.weights), ("code", ram.code)) if size]
    ram_items = (
        ("arena", ram.arena),
        *copied,
        ("static", ram.static),
        ("stack (reserved)", image.board.chip.stack_bytes),
    )
    if image.board.hosted:
        flash_need, ram_need = flash.total, ram.total
    else:
        elf = read_elf(image.elf.read_bytes())
        flash_need, ram_need = (needed(image.board, elf, name) for name in (chip.code, chip.data))
    return Worksheet(
        board,
        Account("flash", code, flash_items, code.size - flash_need),
        Account("RAM", data, ram_items, data.size - ram_need),
    )


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
    """One row per board: whether it fits and by how much; or the reason why nobody knows."""
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

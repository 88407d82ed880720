"""The memory worksheet: what an image takes of flash and RAM, item by item, and whether it fits.

A model that may not fit is built for a board like its own in which everything fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.firmware.elf import read_elf
from baretorch.firmware.fit import needed, roomy
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.ir.graph import Graph
from baretorch.options import Options
from baretorch.pipeline import build_image, compile_graph
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board


@dataclass(frozen=True)
class Account:
    """The use of one memory, item by item. `room` is negative where the memory is too small."""

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


def planning_board(board: Board) -> Board:
    """The board with memories in which everything fits, to find out what a model needs. This computer has room."""
    return board if board.hosted else roomy(board)


def find_worksheet(
    source: Source, graph: Graph, board: Board, options: Options
) -> Worksheet | tuple[Board, CompileError]:
    """The worksheet of the graph on a board, or why there is none: no compiler, no kernel."""
    try:
        compiled = compile_graph(source, graph, planning_board(board), options.for_sizes())
        with scratch() as folder:
            return make_worksheet(board, build_image(compiled, folder))
    except CompileError as error:
        return board, error

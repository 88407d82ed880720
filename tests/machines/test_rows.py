"""The rows that hooks write are read back."""

from __future__ import annotations

from baretorch.machines.rows import ROW_ROOM, ROWS, read_rows
from baretorch.machines.types import Block


def test_rows_become_blocks() -> None:
    memory = ROWS.pack(7, 3, 0x102, 0x200, 5, 0) + ROWS.pack(1, 0, 0, 0x100, 2, 0) + b"\xff" * ROWS.size
    assert read_rows(memoryview(memory), 2) == (Block(0x102, 0x200, 5, 7, 3), Block(0, 0x100, 2, 1, 0))


def test_a_part_of_the_rows_is_none() -> None:
    assert read_rows(memoryview(bytes(ROWS.size)), ROW_ROOM + 1) == ()

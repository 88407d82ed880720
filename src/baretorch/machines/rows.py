"""Read the counts that hooks write: bt_row of hooks/unicorn.c and hooks/qemu.c."""

from __future__ import annotations

import struct

from baretorch.machines.types import Block

ROWS = struct.Struct("<QQIIII")
ROW_ROOM = 1 << 20


def read_rows(memory: memoryview, count: int) -> tuple[Block, ...]:
    """The blocks; none if there were more than the hooks had room for, as part of them would mislead."""
    if count > ROW_ROOM:
        return ()
    rows = ROWS.iter_unpack(memory[: ROWS.size * count])
    return tuple(
        Block(site, address, instructions, executed, taken) for executed, taken, site, address, instructions, _ in rows
    )

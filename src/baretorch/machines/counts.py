"""Read the counts that hooks write for each call of the run function."""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections.abc import Sequence

from baretorch.machines.types import Block

COUNT_ROW = struct.Struct("<QQIIII")  # bt_row of the hooks
ROW_ROOM = 1 << 20
CALL_ROOM = 1 << 12


def read_rows(memory: memoryview, count: int) -> tuple[Block, ...]:
    """Return the blocks; none if there were more than the hooks had room for, because a part would mislead."""
    if count > ROW_ROOM:
        return ()
    rows = COUNT_ROW.iter_unpack(memory[: COUNT_ROW.size * count])
    return tuple(
        Block(site, address, instructions, executed, taken) for executed, taken, site, address, instructions, _ in rows
    )


def last_calls(ring: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the values of the last calls, of `count` in all, from a ring of CALL_ROOM values."""
    return tuple(ring[i % CALL_ROOM] for i in range(max(0, count - CALL_ROOM), count))


class CountsFile:
    """A file that a process with hooks writes: the number of calls, rings of values per call, and the last call's rows.

    It is bt_counts of hooks/qemu.c, with one ring, and of hooks/simavr.c, with two.
    """

    def __init__(self, rings: int) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self._row_count = 8 * (1 + rings * CALL_ROOM)  # the offset
        self.file.truncate(self._row_count + 8 + COUNT_ROW.size * ROW_ROOM)
        self._memory = mmap.mmap(self.file.fileno(), 0)

    def ring(self, number: int) -> tuple[int, ...]:
        """Return the values of a ring for the last calls."""
        (count,) = struct.unpack_from("<Q", self._memory)
        return last_calls(struct.unpack_from(f"<{CALL_ROOM}Q", self._memory, 8 * (1 + number * CALL_ROOM)), count)

    def blocks(self) -> tuple[Block, ...]:
        (count,) = struct.unpack_from("<Q", self._memory, self._row_count)
        return read_rows(memoryview(self._memory)[self._row_count + 8 :], count)

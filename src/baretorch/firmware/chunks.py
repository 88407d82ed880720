"""Pieces of memory with their addresses, from which BIN, HEX and UF2 files are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.firmware.elf import LOAD, Elf


@dataclass(frozen=True)
class Chunk:
    address: int
    data: bytes

    @property
    def end(self) -> int:
        return self.address + len(self.data)


def merge(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Sort by address and join neighbours. Raises CompileError if two chunks contain the same byte."""
    merged: list[tuple[int, bytearray]] = []
    for chunk in sorted((c for c in chunks if c.data), key=lambda c: c.address):
        if merged:
            start, body = merged[-1]
            end = start + len(body)
            if chunk.address < end:
                raise CompileError(f"two pieces of the image claim address {chunk.address:#x}")
            if chunk.address == end:
                body += chunk.data
                continue
        merged.append((chunk.address, bytearray(chunk.data)))
    return tuple(Chunk(start, bytes(body)) for start, body in merged)


def loaded(elf: Elf) -> tuple[Chunk, ...]:
    """Return the bytes that a programmer writes to the chip: the loadable segments at their physical addresses."""
    return merge(Chunk(s.physical, s.data) for s in elf.segments if s.type == LOAD)

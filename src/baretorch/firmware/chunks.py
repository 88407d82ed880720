"""Pieces of memory with their addresses, and the files that every programming tool reads: BIN and Intel HEX.

IntelHex is not used: it takes more than twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.firmware.elf import LOAD, Elf

FILL = b"\xff"  # the content of erased flash
LARGEST_BIN = 1 << 28  # a gap between flash and RAM would make a useless file
ROW = 16

_DATA, _END, _, _, _LINEAR, _START_LINEAR = range(6)


@dataclass(frozen=True)
class Chunk:
    """A piece of memory."""

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


def load_chunks(elf: Elf) -> tuple[Chunk, ...]:
    """Return the bytes that a programmer writes to the chip: the loadable segments at their physical addresses."""
    return merge(Chunk(s.physical, s.data) for s in elf.segments if s.type == LOAD)


def encode_bin(chunks: Sequence[Chunk]) -> bytes:
    """Return the bytes from the lowest to the highest address; gaps are filled like erased flash."""
    if not chunks:
        return b""
    base, end = min(c.address for c in chunks), max(c.end for c in chunks)
    if end - base > LARGEST_BIN:
        raise CompileError(f"the image spans {end - base} bytes from {base:#x}: too much for a BIN file")
    image = bytearray(FILL * (end - base))
    for c in chunks:
        image[c.address - base : c.end - base] = c.data
    return bytes(image)


def encode_hex(chunks: Sequence[Chunk], entry: int) -> str:
    """Return Intel HEX with 32-bit addresses; `entry` goes into the start record."""
    return "".join(f"{row}\n" for row in _rows(chunks, entry))


def _rows(chunks: Sequence[Chunk], entry: int) -> Iterator[str]:
    upper = 0
    for c in chunks:
        at = c.address
        while at < c.end:
            if at >> 16 != upper:
                upper = at >> 16
                yield _record(0, _LINEAR, upper.to_bytes(2, "big"))
            stop = min(c.end, at - at % ROW + ROW)
            yield _record(at & 0xFFFF, _DATA, c.data[at - c.address : stop - c.address])
            at = stop
    yield _record(0, _START_LINEAR, entry.to_bytes(4, "big"))
    yield _record(0, _END, b"")


def _record(address: int, kind: int, data: bytes) -> str:
    body = bytes([len(data)]) + address.to_bytes(2, "big") + bytes([kind]) + data
    return f":{body.hex()}{-sum(body) & 0xFF:02x}".upper()

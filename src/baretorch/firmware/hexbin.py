"""Writes BIN and Intel HEX, which every programming tool reads. (IntelHex takes more than twice as long.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baretorch.errors import CompileError
from baretorch.firmware.chunks import Chunk

FILL = b"\xff"  # what erased flash holds
LARGEST_BIN = 1 << 28  # a gap between flash and RAM would make a file nobody wants
ROW = 16

_DATA, _END, _, _, _LINEAR, _START_LINEAR = range(6)


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

"""BIN and Intel HEX: the two formats every programming tool takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baretorch.errors import CompileError
from baretorch.firmware.chunks import Chunk, merge

FILL = b"\xff"  # what erased flash holds
LARGEST_BIN = 1 << 28  # a gap between flash and RAM would make a file nobody wants
ROW = 16

_DATA, _END, _SEGMENT, _START_SEGMENT, _LINEAR, _START_LINEAR = range(6)


def encode_bin(chunks: Sequence[Chunk]) -> bytes:
    """The bytes from the lowest to the highest address, gaps filled as erased flash."""
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
    """Intel HEX with 32-bit addresses; `entry` goes into the start record."""
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


def decode_hex(text: str) -> tuple[Chunk, ...]:
    """Reads Intel HEX back; CompileError, with the line, for whatever is wrong."""
    chunks: list[Chunk] = []
    base = 0
    for number, line in enumerate(text.split(), 1):
        try:
            body = bytes.fromhex(line[1:])
        except ValueError:
            body = b""
        if line[0] != ":" or len(body) < 5 or len(body) != body[0] + 5 or sum(body) & 0xFF:
            raise CompileError(f"line {number} of the HEX file is broken", have=line[:80])
        address, kind, data = int.from_bytes(body[1:3], "big"), body[3], body[4:-1]
        if kind == _DATA:
            chunks.append(Chunk(base + address, data))
        elif kind == _END:
            return merge(chunks)
        elif kind in (_LINEAR, _SEGMENT):
            base = int.from_bytes(data, "big") << (16 if kind == _LINEAR else 4)
        elif kind not in (_START_SEGMENT, _START_LINEAR):
            raise CompileError(f"line {number} of the HEX file has the unknown record type {kind}")
    raise CompileError("the HEX file has no end record")

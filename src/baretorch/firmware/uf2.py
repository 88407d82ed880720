"""Reads and writes UF2, the file that users copy to a board's USB drive: 512-byte blocks of 256 payload bytes with
addresses."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.firmware.chunks import Chunk, merge
from baretorch.targets.types import Chip

BLOCK = 512
PAGE = 256  # a block's payload, and what flash is written in
SECTOR = 4096  # what flash is erased in
LARGEST_PAYLOAD = 476

RP2040 = 0xE48BFF56
ABSOLUTE = 0xE48BFF57
RP2350_ARM = 0xE48BFF59
RP2350_RISCV = 0xE48BFF5A

NOT_MAIN_FLASH = 0x0001
FAMILY_PRESENT = 0x2000
EXTENSION_TAGS = 0x8000

_MAGIC_START, _MAGIC_SECOND, _MAGIC_END = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_HEADER = struct.Struct("<8I")

# The RP2350's boot ROM (erratum E10) loses track of erased sectors unless the file starts with a block that it ignores:
# one of the "absolute" family beyond the end of flash.
_E10_ADDRESS = 0x10FFFF00
_E10_EXTENSION = 0x9957E304


@dataclass(frozen=True)
class Uf2Block:
    flags: int
    address: int
    data: bytes
    number: int
    count: int
    family: int | None
    extension: int = 0  # first word after the payload, if flagged


def encode_uf2(chunks: Sequence[Chunk], family: int) -> bytes:
    """Return UF2 for a boot ROM of this family. Every affected sector is written in full up to its last page; gaps are
    zeros."""
    pages = _pages(chunks)
    blocks = [
        Uf2Block(FAMILY_PRESENT, address, page, i, len(pages), family)
        for i, (address, page) in enumerate(pages.items())
    ]
    if family in (RP2350_ARM, RP2350_RISCV):
        flags = FAMILY_PRESENT | EXTENSION_TAGS
        blocks.insert(0, Uf2Block(flags, _E10_ADDRESS, b"\xef" * PAGE, 0, 2, ABSOLUTE, _E10_EXTENSION))
    return b"".join(map(_encode, blocks))


def _pages(chunks: Sequence[Chunk]) -> dict[int, bytes]:
    pages: dict[int, bytearray] = {}
    for c in chunks:
        for at in range(c.address - c.address % PAGE, c.end, PAGE):
            page = pages.setdefault(at, bytearray(PAGE))
            first, last = max(at, c.address), min(at + PAGE, c.end)
            page[first - at : last - at] = c.data[first - c.address : last - c.address]
    end = max(pages, default=0)
    for at in list(pages):
        start = at - at % SECTOR
        for other in range(start, min(start + SECTOR, end), PAGE):
            pages.setdefault(other, bytearray(PAGE))
    return {at: bytes(pages[at]) for at in sorted(pages)}


def _encode(block: Uf2Block) -> bytes:
    header = _HEADER.pack(
        _MAGIC_START,
        _MAGIC_SECOND,
        block.flags,
        block.address,
        len(block.data),
        block.number,
        block.count,
        block.family or 0,
    )
    extension = struct.pack("<I", block.extension) if block.flags & EXTENSION_TAGS else b""
    body = header + block.data + extension
    return body.ljust(BLOCK - 4, b"\0") + struct.pack("<I", _MAGIC_END)


def decode_uf2(data: bytes) -> tuple[Uf2Block, ...]:
    """Return the blocks of a UF2 file in order. Raises CompileError with the block for any fault."""
    if not data or len(data) % BLOCK:
        raise CompileError("not a UF2 file", have=f"{len(data)} bytes", need=f"a multiple of {BLOCK} bytes")
    return tuple(_decode(data[at : at + BLOCK], at // BLOCK) for at in range(0, len(data), BLOCK))


def _decode(raw: bytes, index: int) -> Uf2Block:
    start, second, flags, address, size, number, count, family = _HEADER.unpack_from(raw)
    (end,) = struct.unpack_from("<I", raw, BLOCK - 4)
    if (start, second, end) != (_MAGIC_START, _MAGIC_SECOND, _MAGIC_END):
        raise CompileError(f"block {index} of the UF2 file has wrong magic numbers")
    if size > LARGEST_PAYLOAD:
        raise CompileError(f"block {index} of the UF2 file claims {size} bytes", need=f"at most {LARGEST_PAYLOAD}")
    if number >= count:
        raise CompileError(f"block {index} of the UF2 file is numbered {number} of {count}")
    body = raw[_HEADER.size : _HEADER.size + size]
    extension = 0
    if flags & EXTENSION_TAGS and size + 4 <= LARGEST_PAYLOAD:
        (extension,) = struct.unpack_from("<I", raw, _HEADER.size + size)
    return Uf2Block(flags, address, body, number, count, family if flags & FAMILY_PRESENT else None, extension)


def check_uf2(data: bytes, chip: Chip) -> None:
    """Raise CompileError unless the file has the chip's family and all blocks of each family, and stays inside the
    memories."""
    blocks = decode_uf2(data)
    family = chip.uf2_family or 0
    first = blocks[0]
    ignored = first.family == ABSOLUTE and (first.address, first.extension) == (_E10_ADDRESS, _E10_EXTENSION)
    series = [b for b in blocks[ignored:] if not b.flags & NOT_MAIN_FLASH]
    for name in (family, *sorted({b.family or 0 for b in series} - {family})):
        flash_contents(series, name)
    for index, b in enumerate(blocks):
        inside = any(m.origin <= b.address and b.address + len(b.data) <= m.origin + m.size for m in chip.memories)
        if b.family == family and not b.flags & NOT_MAIN_FLASH and not inside:
            raise CompileError(
                f"block {index} of the UF2 file is for address {b.address:#010x}, where chip {chip.name} has no memory",
                need=[f"{m.name} 0x{m.origin:08x} .. 0x{m.origin + m.size - 1:08x}" for m in chip.memories],
            )


def flash_contents(blocks: Iterable[Uf2Block], family: int) -> tuple[Chunk, ...]:
    """Return the data that a boot ROM of this family writes to flash: its own complete series of blocks, in any
    order."""
    own = [b for b in blocks if b.family == family and not b.flags & NOT_MAIN_FLASH]
    if not own:
        raise CompileError(f"the UF2 file has nothing for family {family:#010x}")
    counts = {b.count for b in own}
    if len(counts) != 1 or sorted(b.number for b in own) != list(range(len(own))) or counts != {len(own)}:
        raise CompileError("the UF2 file is incomplete", have=f"{len(own)} blocks", need=f"{max(counts)}, each once")
    return merge(Chunk(b.address, b.data) for b in own)

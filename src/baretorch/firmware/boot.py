"""Checks images as the boot ROMs of RP2040 and RP2350 do before they start one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from baretorch.errors import CompileError, InternalError
from baretorch.firmware.chunks import Chunk
from baretorch.firmware.elf import LOAD, read_elf

FLASH = 0x10000000  # both chips map flash here
BOOT2_CODE = 252  # bytes of the RP2040's second stage, followed by their checksum
BOOT2 = BOOT2_CODE + 4

IMAGE_DEF_RANGE = 4096  # bytes in which the RP2350 searches for an IMAGE_DEF
_BLOCK_START, _BLOCK_END = 0xFFFFDED3, 0xAB123579
_IMAGE_TYPE, _LAST = 0x42, 0xFF
_EXECUTABLE_ARM, _EXECUTABLE_RISCV = 0x1021, 0x1101


def crc32_mpeg2(data: bytes) -> int:
    """Return the CRC-32/MPEG-2: polynomial 0x04C11DB7, most significant bit first, starts with all ones, not
    inverted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


def sign_boot2(elf: bytes) -> bytes:
    """Return the ELF file with the checksum of the RP2040's second stage filled in."""
    for segment in read_elf(elf).segments:
        if segment.type == LOAD and segment.physical == FLASH and len(segment.data) >= BOOT2:
            at = segment.offset + BOOT2_CODE
            return elf[:at] + struct.pack("<I", crc32_mpeg2(segment.data[:BOOT2_CODE])) + elf[at + 4 :]
    raise InternalError(f"the RP2040 image has no second stage boot code at {FLASH:#x}")


def check_rp2040(image: Sequence[Chunk]) -> None:
    """Raise CompileError unless the boot ROM of an RP2040 would start this image."""
    start = _start(image)
    if len(start) < BOOT2 + 8:
        raise CompileError("the RP2040 image ends before its vector table", have=f"{len(start)} bytes")
    (stored,), needed = struct.unpack_from("<I", start, BOOT2_CODE), crc32_mpeg2(start[:BOOT2_CODE])
    if stored != needed:
        raise CompileError(
            "the RP2040 would not start this image: checksum of its second stage",
            have=f"{stored:#010x}",
            need=f"{needed:#010x}",
        )
    _check_vectors(start[BOOT2:])


def check_rp2350(image: Sequence[Chunk]) -> None:
    """Raise CompileError unless the boot ROM of an RP2350 would find an executable image here."""
    start = _start(image)[:IMAGE_DEF_RANGE]
    words = struct.unpack(f"<{len(start) // 4}I", start[: len(start) // 4 * 4])
    for i, word in enumerate(words):
        if word == _BLOCK_START and (kind := _image_def(words[i + 1 :])) is not None:
            if kind == _EXECUTABLE_ARM:
                _check_vectors(start)
            return
    raise CompileError(
        "the RP2350 would not start this image",
        need=f"an IMAGE_DEF block in the first {IMAGE_DEF_RANGE} bytes of flash",
    )


def _image_def(words: Sequence[int]) -> int | None:
    """Return the executable's kind if these words, after the start marker, are a whole block with an IMAGE_TYPE
    item."""
    at, kind = 0, None
    while at < len(words):
        item, size = words[at] & 0xFF, words[at] >> 8 & 0xFF
        if item == _LAST:
            whole = words[at] >> 8 & 0xFFFF == at and words[at + 2 : at + 3] == (_BLOCK_END,)
            return kind if whole else None
        if item == _IMAGE_TYPE and words[at] >> 16 in (_EXECUTABLE_ARM, _EXECUTABLE_RISCV):
            kind = words[at] >> 16
        if size == 0:
            return None
        at += size
    return None


def _start(image: Sequence[Chunk]) -> bytes:
    for chunk in image:
        if chunk.address == FLASH:
            return chunk.data
    raise CompileError(f"the image has nothing at the start of flash, {FLASH:#x}")


def _check_vectors(vectors: bytes) -> None:
    stack, reset = struct.unpack_from("<2I", vectors)
    if not 0x20000000 < stack <= 0x20082000 or stack % 8:
        raise CompileError("the image's first vector is not a stack pointer", have=f"{stack:#010x}")
    if not reset & 1 or not FLASH <= reset < 0x20000000:
        raise CompileError("the image's reset vector is not Thumb code in flash", have=f"{reset:#010x}")

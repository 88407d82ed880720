"""BIN, HEX and UF2: written as other tools write them, read back as they were, damaged ones refused."""

from __future__ import annotations

import io
import random
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intelhex import IntelHex

from baretorch.errors import CompileError
from baretorch.firmware import uf2
from baretorch.firmware.boot import check_rp2040, check_rp2350, crc32_mpeg2
from baretorch.firmware.chunks import Chunk, encode_bin, encode_hex, load_chunks, merge
from baretorch.firmware.elf import read_elf
from tests.firmware.conftest import Build

CHUNKS = st.lists(
    st.builds(Chunk, st.integers(0, 63).map(lambda n: 0x1000FF00 + 300 * n), st.binary(min_size=1, max_size=299)),
    unique_by=lambda c: c.address,
    min_size=1,
    max_size=8,
)


def read_hex(text: str) -> tuple[Chunk, ...]:
    """Return what IntelHex finds in a HEX file."""
    found = IntelHex(io.StringIO(text))
    return merge([Chunk(at, found.gets(at, end - at)) for at, end in found.segments()])


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_bin_and_hex_equal_objcopy(image_of: Build, toolchain: str, tmp_path: Path) -> None:
    image = image_of("nucleo-wb55rg", toolchain)
    assert image.bin is not None and image.hex is not None and image.uf2 is None
    subprocess.run(["arm-none-eabi-objcopy", "-O", "ihex", image.elf, tmp_path / "theirs"], check=True)
    theirs = read_hex((tmp_path / "theirs").read_text())  # without the gaps between sections
    whole, start = image.bin.read_bytes(), theirs[0].address
    assert start + len(whole) == theirs[-1].end
    for chunk in theirs:
        assert whole[chunk.address - start : chunk.end - start] == chunk.data
    assert encode_bin(read_hex(image.hex.read_text())) == whole
    assert read_hex(image.hex.read_text()) == load_chunks(read_elf(image.elf.read_bytes()))


@given(CHUNKS)
def test_hex_round_trip(chunks: list[Chunk]) -> None:
    text = encode_hex(merge(chunks), 0x10000101)
    assert read_hex(text) == merge(chunks)
    assert IntelHex(io.StringIO(text)).start_addr == {"EIP": 0x10000101}
    assert text.endswith("\n:00000001FF\n")


def test_hex_record_by_hand() -> None:
    text = encode_hex((Chunk(0x0100, bytes.fromhex("214601360121470136007EFE09D21901")),), 0)
    assert text.splitlines()[0] == ":10010000214601360121470136007EFE09D2190140"


def test_bin_fills_gaps_as_erased_flash_and_refuses_huge_ones() -> None:
    assert encode_bin((Chunk(8, b"ab"), Chunk(12, b"c"))) == b"ab\xff\xffc"
    with pytest.raises(CompileError, match="too much for a BIN file"):
        encode_bin((Chunk(0, b"a"), Chunk(0x20000000, b"b")))


def test_overlapping_chunks_are_refused() -> None:
    with pytest.raises(CompileError, match="two pieces of the image claim address 0x2"):
        merge((Chunk(0, b"abc"), Chunk(2, b"d")))


@given(CHUNKS, st.sampled_from([uf2.RP2040, uf2.RP2350_ARM]))
def test_uf2_round_trip(chunks: list[Chunk], family: int) -> None:
    flash = uf2.flash_contents(uf2.decode_uf2(uf2.encode_uf2(merge(chunks), family)), family)
    for chunk in chunks:
        (home,) = [c for c in flash if c.address <= chunk.address < c.end]
        assert home.data[chunk.address - home.address :].startswith(chunk.data)


def test_uf2_writes_touched_sectors_in_full_and_no_further_than_the_last_page() -> None:
    chunks = (Chunk(0x10001200, b"a"), Chunk(0x10003100, b"b"))
    blocks = uf2.decode_uf2(uf2.encode_uf2(chunks, uf2.RP2040))
    assert [b.address for b in blocks] == [*range(0x10001000, 0x10002000, 256), 0x10003000, 0x10003100]
    assert [b.number for b in blocks] == list(range(18)) and {b.count for b in blocks} == {18}
    assert {(b.flags, b.family, len(b.data)) for b in blocks} == {(0x2000, 0xE48BFF56, 256)}


def test_rp2350_file_starts_with_the_block_for_erratum_e10() -> None:
    first, second = uf2.decode_uf2(uf2.encode_uf2((Chunk(0x10000000, b"a"),), uf2.RP2350_ARM))
    assert (first.flags, first.address, first.family, first.number, first.count) == (
        0xA000,
        0x10FFFF00,
        0xE48BFF57,
        0,
        2,
    )
    assert first.data == b"\xef" * 256 and first.extension == 0x9957E304
    assert (second.family, second.number, second.count) == (0xE48BFF59, 0, 1)


def test_incomplete_or_foreign_uf2_is_refused() -> None:
    blocks = uf2.decode_uf2(uf2.encode_uf2((Chunk(0x10000000, bytes(600)),), uf2.RP2040))
    with pytest.raises(CompileError, match="incomplete"):
        uf2.flash_contents(blocks[:-1], uf2.RP2040)
    with pytest.raises(CompileError, match="nothing for family 0xe48bff59"):
        uf2.flash_contents(blocks, uf2.RP2350_ARM)
    with pytest.raises(CompileError, match="incomplete"):
        uf2.flash_contents((*blocks[:-1], replace(blocks[0], number=0)), uf2.RP2040)


def test_damaged_uf2_raises_only_compile_errors() -> None:
    whole = uf2.encode_uf2((Chunk(0x10000000, bytes(range(256)) * 5),), uf2.RP2350_ARM)
    chance = random.Random(2)
    refused = 0
    for _ in range(500):
        damaged = bytearray(whole)
        at = 512 * chance.randrange(len(whole) // 512) + chance.choice((*range(32), *range(508, 512)))
        damaged[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        try:
            uf2.flash_contents(uf2.decode_uf2(bytes(damaged[: chance.choice((None, None, None, at))])), uf2.RP2350_ARM)
        except CompileError:
            refused += 1
    assert refused > 200


@settings(max_examples=50)
@given(st.binary(max_size=1024))
def test_random_bytes_are_no_uf2(data: bytes) -> None:
    with pytest.raises(CompileError):
        uf2.decode_uf2(data)


def test_crc_has_the_published_check_value() -> None:
    assert crc32_mpeg2(b"123456789") == 0x0376E6E7


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_boot_rom_of_rp2040_would_start_the_image(image_of: Build, toolchain: str) -> None:
    image = image_of("pico", toolchain)
    assert image.uf2 is not None
    flash = uf2.flash_contents(uf2.decode_uf2(image.uf2.read_bytes()), uf2.RP2040)
    check_rp2040(flash)
    check_rp2040(load_chunks(read_elf(image.elf.read_bytes())))

    start = flash[0].data
    for damaged, what in (
        (bytes([start[0] ^ 1]) + start[1:], "checksum of its second stage"),
        (start[:256] + struct.pack("<I", 7) + start[260:], "not a stack pointer"),
        (start[:260] + struct.pack("<I", 0x20000001) + start[264:], "not Thumb code in flash"),
        (start[:100], "ends before its vector table"),
    ):
        with pytest.raises(CompileError, match=what):
            check_rp2040((Chunk(0x10000000, damaged),))


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_boot_rom_of_rp2350_would_start_the_image(image_of: Build, toolchain: str) -> None:
    image = image_of("pico2", toolchain)
    assert image.uf2 is not None
    (flash,) = uf2.flash_contents(uf2.decode_uf2(image.uf2.read_bytes()), uf2.RP2350_ARM)
    check_rp2350((flash,))

    at = flash.data.index(struct.pack("<I", 0xFFFFDED3))
    for damage in (at, at + 6, at + 9, at + 16):  # start marker, image type, size, end marker
        broken = flash.data[:damage] + bytes([flash.data[damage] ^ 0x55]) + flash.data[damage + 1 :]
        with pytest.raises(CompileError, match="would not start"):
            check_rp2350((Chunk(flash.address, broken),))
    with pytest.raises(CompileError, match="nothing at the start of flash"):
        check_rp2350((Chunk(0x10001000, flash.data),))

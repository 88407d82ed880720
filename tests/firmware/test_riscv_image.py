"""The image for the RP2350's RISC-V cores, as far as it can be looked at: no emulator has that chip."""

from __future__ import annotations

import struct

import pytest

from baretorch.firmware.boot import check_rp2350
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.elf import read_elf
from baretorch.firmware.uf2 import RP2350_RISCV, decode_uf2, flash_contents
from tests.machines.images import image

START, END = 0xFFFFDED3, 0xAB123579


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_the_boot_rom_finds_its_way(toolchain: str) -> None:
    """The UF2 is of the RISC-V family, and its block says where the program and the stack begin."""
    made = image("pico2-riscv", toolchain=toolchain)
    assert made.uf2 is not None
    chunks = flash_contents(decode_uf2(made.uf2.read_bytes()), RP2350_RISCV)
    check_rp2350(chunks)
    flash = next(c.data for c in chunks if c.address == 0x10000000)
    words = struct.unpack("<1024I", flash[:4096].ljust(4096, b"\0"))
    at = words.index(START)
    elf = read_elf(made.elf.read_bytes())
    entry, stack = elf.symbol("bt_reset").address, elf.symbol("bt_stack_top").address
    assert words[at + 1 : at + 8] == (0x11010142, 0x0344, entry, stack, 0x04FF, 0, END)
    assert entry == 0x10000000 and stack == 0x20080000
    (code,) = (c for c in load_chunks(elf) if c.address == 0x10000000)
    assert flash.startswith(code.data)


def test_what_the_core_has_is_used_and_nothing_else() -> None:
    """No floating point; flash is made fast by code in RAM."""
    elf = read_elf(image("pico2-riscv", toolchain="gcc").elf.read_bytes())
    assert 0x20000000 <= elf.symbol("bt_flash_fast").address < 0x20080000
    assert elf.symbol("bt_trap_entry").address % 4 == 0  # mtvec has flags in its low bits

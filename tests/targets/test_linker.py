"""The linker script: read by GNU ld and LLD alike, everything in its bank, nothing that must stay thrown away."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from baretorch.errors import InternalError
from baretorch.firmware.elf import Elf, Section, read_elf
from baretorch.firmware.toolchain import find_toolchain
from baretorch.options import Optimize
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.linker import linker_script
from tests.symbols import symbols_of

BARE = [name for name in board_names() if load_board(name).chip.boot not in ("host", "avr")]
NOBITS = 8

PROGRAM = """\
#include <stdint.h>
__attribute__((section(".vectors"))) const uint32_t vectors[16] = {1};
__attribute__((section(".boot2"))) const uint8_t boot2[256] = {2};
__attribute__((section(".image_def"))) const uint32_t image_def[5] = {3};
const float bt_weights_conv[100] = {1.0f};
const uint32_t other_constant[10] = {1};
uint32_t changed[3] = {1, 2, 3};
uint32_t blank[5];
uint8_t arena[ARENA] __attribute__((section(".bss.bt_arena.main")));
uint8_t side_arena[64] __attribute__((section(".bss.bt_arena." SIDE ".main")));
uint32_t unused[7] = {4};
const uint32_t near[10] __attribute__((section(".data.bt_weights." SIDE ".near"))) = {17};
__attribute__((section(START))) void bt_reset(void)
{
    for (;;) {
        volatile uint32_t sink = changed[blank[0]] + other_constant[blank[3]] + arena[blank[1]];
        sink += side_arena[blank[2]] + near[blank[4]];
        sink = (uint32_t)bt_weights_conv[sink];
    }
}
"""


def _link(board: str, toolchain: str, folder: Path, arena: int = 128, cores: int = 1) -> Elf | str:
    """The linked program, or the linker's complaint. The side arena goes to the board's last RAM bank."""
    description = load_board(board)
    chip = description.chip
    tools = find_toolchain(description, toolchain)
    side = [m.name for m in chip.memories if m.kind == "ram"][-1]
    start = ".start" if chip.boot == "riscv" else ".text.bt_reset"
    text = PROGRAM.replace("ARENA", str(arena)).replace("SIDE", f'"{side}"').replace("START", f'"{start}"')
    source, script, elf = (folder / name for name in ("program.c", "program.ld", "program.elf"))
    source.write_text(text)
    script.write_text(linker_script(description, cores))
    tools.compile(source, folder / "program.o", [], Optimize.SIZE)
    complaint = tools.link([folder / "program.o"], script, elf, folder / "program.map")
    return complaint if complaint is not None else read_elf(elf.read_bytes())


def _linked(board: str, toolchain: str, folder: Path) -> tuple[dict[str, Section], Elf]:
    elf = _link(board, toolchain, folder)
    assert isinstance(elf, Elf), elf
    return {section.name: section for section in elf.sections}, elf


def _copies(elf: Elf) -> list[tuple[int, int, int]]:
    """Return the copies of start-up code: from, to, up to."""
    value = symbols_of(elf)
    raw = next(
        s.data[value["bt_copies"] - s.address : value["bt_copies_end"] - s.address]
        for s in elf.segments
        if s.address <= value["bt_copies"] < s.address + len(s.data)
    )
    return list(struct.iter_unpack("<III", raw))


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", BARE)
def test_weights_in_ram_are_copied_there(board: str, toolchain: str, tmp_path: Path) -> None:
    chip = load_board(board).chip
    sections, elf = _linked(board, toolchain, tmp_path)
    copies = _copies(elf)
    banks = [m for m in chip.memories if m.kind == "ram"]
    assert len(copies) == 1 + len(banks) + chip.boot.startswith("image_def")  # whose code for its flash runs in RAM
    last = banks[-1]
    section = sections[f".weights.{last.name}"]
    assert section.size == 40 and last.origin <= section.address < last.origin + last.size
    (copy,) = [c for c in copies if c[1] == section.address and c[1] < c[2]]
    assert copy[2] - copy[1] == 40
    segment = next(s for s in elf.segments if s.physical <= copy[0] < s.physical + len(s.data))
    assert struct.unpack_from("<I", segment.data, copy[0] - segment.physical) == (17,)


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", BARE)
def test_everything_in_its_bank(board: str, toolchain: str, tmp_path: Path) -> None:
    chip = load_board(board).chip
    code, data = chip.memory(chip.code), chip.memory(chip.data)
    sections, elf = _linked(board, toolchain, tmp_path)

    assert sections[".weights"].size == 400
    for name in (".start" if chip.boot == "riscv" else ".text", ".weights", ".rodata"):
        assert sections[name].size > 0
        assert code.origin <= sections[name].address < code.origin + code.size
    for name in (".data", ".bss", ".arena", ".stack"):
        assert data.origin <= sections[name].address < data.origin + data.size
    assert all(sections[name].type == NOBITS for name in (".bss", ".arena", ".stack"))

    assert (sections[".data"].size, sections[".bss"].size) == (12, 20), "unused data must be left out"
    value = symbols_of(elf)
    assert value["bt_stack_top"] == data.origin + data.size
    assert value["bt_stack_top"] - value["bt_stack_limit"] == chip.stack_bytes == sections[".stack"].size
    assert value["bt_data_end"] - value["bt_data_start"] == 12
    (copy,) = [c for c in _copies(elf) if c[1] == value["bt_data_start"] and c[1] < c[2]]
    assert code.origin < copy[0] < code.origin + code.size and copy[2] == value["bt_data_end"]
    assert elf.entry & ~1 == value["bt_reset"]


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", [b for b in BARE if sum(m.kind == "ram" for m in load_board(b).chip.memories) > 1])
def test_arena_in_another_bank(board: str, toolchain: str, tmp_path: Path) -> None:
    bank = [m for m in load_board(board).chip.memories if m.kind == "ram"][-1]
    sections, _ = _linked(board, toolchain, tmp_path)
    side = sections[f".arena.{bank.name}"]
    assert (side.address, side.size, side.type) == (bank.origin + 48, 64, NOBITS), "behind the weights there"
    assert sections[".arena"].size == 128


AVR = """\
#include <stdint.h>
#define FLASH(name) __attribute__((section(".rodata.bt_weights." name))) const __flash
__attribute__((section(".vectors"), used)) void vectors(void) { }
FLASH("conv") uint8_t conv[100] = {1};
const uint8_t near[10] __attribute__((section(".data.bt_weights.SRAM.near"))) = {17};
const uint8_t other_constant[7] = {1};
uint8_t changed[3] = {1, 2, 3}, blank[5], unused[7] = {4};
uint8_t arena[128] __attribute__((section(".bss.bt_arena.main")));
void __do_copy_data(void) { }
void __do_clear_bss(void) { }
void bt_reset(void)
{
    for (;;) {
        volatile uint8_t sink = (uint8_t)(changed[blank[0]] + other_constant[blank[3]] + arena[blank[1]]);
        sink = (uint8_t)(conv[sink] + near[blank[4]]);
    }
}
"""


@pytest.mark.parametrize("board", ["arduino-uno", "arduino-mega"])
def test_two_address_spaces(board: str, tmp_path: Path) -> None:
    description = load_board(board)
    data = description.chip.memory("SRAM")
    tools = find_toolchain(description)
    (tmp_path / "program.c").write_text(AVR)
    (tmp_path / "program.ld").write_text(linker_script(description))
    tools.compile(tmp_path / "program.c", tmp_path / "program.o", [], Optimize.SIZE)
    script, made = tmp_path / "program.ld", tmp_path / "program.elf"
    assert tools.link([tmp_path / "program.o"], script, made, tmp_path / "program.map") is None
    elf = read_elf(made.read_bytes())
    sections = {section.name: section for section in elf.sections}
    assert sections[".vectors"].address == 0
    assert sections[".vectors"].size <= sections[".weights"].address < sections[".text"].address
    assert (sections[".weights"].size, sections[".text"].address % 2) == (100, 0)
    assert (sections[".weights.SRAM"].address, sections[".weights.SRAM"].size) == (data.origin, 10)
    assert (sections[".data"].address, sections[".data"].size) == (data.origin + 10, 10), "constants are there too"
    assert [sections[name].size for name in (".bss", ".arena")] == [5, 128]
    value = symbols_of(elf)
    (segment,) = [s for s in elf.segments if s.address == data.origin and s.data]
    assert (segment.data[0], len(segment.data)) == (17, 20)
    assert sections[".weights"].address + 100 <= segment.physical <= sections[".text"].address - 20
    assert value["bt_data_end"] - value["bt_data_start"] == 20
    assert value["bt_stack_top"] == data.origin + data.size


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize(
    ("board", "heads"),
    [
        ("pico", {".boot2": 0x10000000, ".vectors": 0x10000100}),
        ("pico2", {".vectors": 0x10000000, ".image_def": 0x10000040}),
        ("nucleo-wb55rg", {".vectors": 0x08000000}),
        ("mps2-an505", {".vectors": 0x10000000}),
        ("virt-rv32", {".start": 0x80000000}),
    ],
)
def test_image_starts_as_the_boot_rom_wants(board: str, heads: dict[str, int], toolchain: str, tmp_path: Path) -> None:
    sections, _ = _linked(board, toolchain, tmp_path)
    assert {name: sections[name].address for name in heads} == heads


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_data_must_leave_room_for_the_stack(toolchain: str, tmp_path: Path) -> None:
    room = 16384 - 2048  # the micro:bit's RAM without its stack
    assert isinstance(_link("microbit", toolchain, tmp_path, arena=room - 256), Elf)
    complaint = _link("microbit", toolchain, tmp_path, arena=room - 16)
    assert isinstance(complaint, str)
    assert "SRAM is too small for data, arena and 2048 bytes of stack" in complaint or "overlap" in complaint


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", ["pico", "pico2w"])
def test_each_core_has_a_stack(board: str, toolchain: str, tmp_path: Path) -> None:
    chip = load_board(board).chip
    elf = _link(board, toolchain, tmp_path, cores=2)
    assert isinstance(elf, Elf), elf
    value, size = symbols_of(elf), chip.stack_bytes
    top = value["bt_stack_top"]
    assert top == chip.memory(chip.data).origin + chip.memory(chip.data).size
    assert (value["bt_stack_limit"], value["bt_core1_stack_limit"]) == (top - size, top - 2 * size)
    assert value["bt_core1_stack_top"] == value["bt_stack_limit"]
    assert next(s.size for s in elf.sections if s.name == ".stack") == 2 * size

    room = chip.memory(chip.data).size - 2 * size
    assert isinstance(_link(board, toolchain, tmp_path, arena=room - 256, cores=2), Elf)
    complaint = _link(board, toolchain, tmp_path, arena=room - 16, cores=2)
    assert isinstance(complaint, str)
    assert f"SRAM is too small for data, arena and {2 * size} bytes of stack" in complaint or "overlap" in complaint


def test_host_has_none() -> None:
    with pytest.raises(InternalError, match="host has no linker script"):
        linker_script(load_board("host"))

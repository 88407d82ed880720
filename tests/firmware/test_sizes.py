"""Sizes: the part of an image that the run function needs is what the disassembly shows it to need."""

from __future__ import annotations

import re
import subprocess

import pytest

from baretorch.firmware.elf import FUNC, read_elf
from baretorch.firmware.reach import PieceMap, parse_map, reachable
from baretorch.firmware.types import Image
from tests.firmware.conftest import Build

TOOLCHAINS = ["gcc", "zig"]
OBJDUMP = {
    "pico": "arm-none-eabi-objdump",
    "mps2-an386": "arm-none-eabi-objdump",
    "virt-rv32": "riscv64-unknown-elf-objdump",
}
WEIGHTS_BYTES, ARENA_BYTES, COUNTER_BYTES, TABLE_BYTES = 16, 256, 4, 16


def called_from(image: Image, root: str, functions: set[str]) -> set[str]:
    """Functions reachable from `root` through branches, by the disassembler's text alone."""
    command = [OBJDUMP[image.board.name], "-d", "--no-show-raw-insn", image.elf]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    calls: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            name = head[1] if head[1] in functions else name
        elif target := re.search(r"<([^+>]+)>$", line.partition(";")[0].rstrip()):
            calls.setdefault(name, set()).add(target[1])
    found, waiting = set(), [root]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(calls.get(name, ()))
    return found


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board", OBJDUMP)
def test_closure_is_what_the_disassembly_calls(image_of: Build, board: str, toolchain: str) -> None:
    image = image_of(board, toolchain)
    elf = read_elf(image.elf.read_bytes())
    there = PieceMap(elf, parse_map(image.map.read_text()))
    model = reachable(elf, there, elf.symbol("dummy_run").address)
    functions = [s for s in elf.symbols if s.type == FUNC and s.size]
    ours = {s.address for s in functions if there.at(s.address) in model}
    called = called_from(image, "dummy_run", {s.name for s in functions})
    theirs = {s.address for s in functions if s.name in called}
    # A section of a library may hold more functions than are called: they are in flash all the same.
    sections = {there.at(address) for address in theirs}
    assert theirs <= ours
    assert {there.at(address) for address in ours} == sections

    names = {s.name for s in functions if s.address in ours}
    assert ("__aeabi_fmul" in names) == (board == "pico")
    assert "helper" in names and "dummy_unrelated" not in names and "bt_serve" not in names


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_model_code_by_hand(image_of: Build, toolchain: str) -> None:
    """On a CPU with an FPU no library is needed: the code is two functions and one table."""
    image = image_of("mps2-an386", toolchain)
    elf = read_elf(image.elf.read_bytes())
    expected = elf.symbol("dummy_run").size + elf.symbol("helper").size + TABLE_BYTES
    assert expected <= image.flash.model_code <= expected + 6


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board", [*OBJDUMP, "host"])
def test_totals(image_of: Build, board: str, toolchain: str) -> None:
    image = image_of(board, toolchain)
    flash, ram = image.flash, image.ram
    assert flash.weights == WEIGHTS_BYTES and ram.arena == ARENA_BYTES and ram.model_static == COUNTER_BYTES
    assert 0 < flash.model_code < flash.code == flash.total - flash.weights
    assert ram.total == ram.arena + ram.static + ram.stack and ram.static >= COUNTER_BYTES
    if image.bin is not None:
        assert flash.total == image.bin.stat().st_size

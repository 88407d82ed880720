"""The ELF reader agrees with binutils, and survives whatever it is given."""

from __future__ import annotations

import random
import subprocess

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.elf import ALLOC, ARM, FUNC, RISCV, X86_64, read_elf
from tests.firmware.conftest import Build


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize(
    ("board", "tools", "machine"),
    [("pico", "arm-none-eabi-", ARM), ("virt-rv32", "riscv64-unknown-elf-", RISCV), ("host", "", X86_64)],
)
def test_agrees_with_binutils(image_of: Build, board: str, tools: str, machine: int, toolchain: str) -> None:
    path = image_of(board, toolchain).elf
    elf = read_elf(path.read_bytes())
    assert elf.machine == machine

    listed = subprocess.run([f"{tools}nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    theirs = {(int(value, 16), name) for value, _, name in (row.split() for row in listed.splitlines())}
    ours = {(s.address, s.name) for s in elf.symbols if s.section and s.name}
    assert {(v, n) for v, n in theirs if n == "dummy_run"} == {(elf.symbol("dummy_run").address, "dummy_run")}
    assert theirs <= ours

    headers = subprocess.run([f"{tools}readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    for section in elf.sections[1:]:
        assert section.name in headers

    rows = subprocess.run([f"{tools}readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
    if board != "host":
        assert len(elf.relocations) == rows.count(" R_") > 10


def test_functions_have_sizes_and_bytes(image_of: Build) -> None:
    elf = read_elf(image_of("mps2-an386", "gcc").elf.read_bytes())
    run = elf.symbol("dummy_run")
    assert run.type == FUNC and run.value == run.address + 1 and 20 < run.size < 400
    section = elf.section_at(run.address)
    assert section is not None and section.name == ".text" and section.flags & ALLOC
    assert len(elf.bytes_at(run.address, run.size)) == run.size
    with pytest.raises(CompileError, match="no 4 bytes at 0xdead0000"):
        elf.bytes_at(0xDEAD0000, 4)
    with pytest.raises(CompileError, match="no symbol nobody"):
        elf.symbol("nobody")


@pytest.mark.parametrize("data", [b"", b"\x7fEL", b"MZ" + bytes(100), b"\x7fELF", b"\x7fELF" + bytes(12)])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(CompileError, match="ELF"):
        read_elf(data)


@pytest.mark.parametrize(("board", "toolchain"), [("pico", "gcc"), ("virt-rv32", "zig"), ("host", "gcc")])
def test_damaged_files_raise_only_compile_errors(image_of: Build, board: str, toolchain: str) -> None:
    whole = image_of(board, toolchain).elf.read_bytes()
    chance = random.Random(1)
    tables = [*range(64), *range(len(whole) - 1600, len(whole))]
    refused = 0
    for _ in range(600):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.choice(tables)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        if chance.random() < 0.2:
            del damaged[chance.randrange(len(damaged)) :]
        try:
            read_elf(bytes(damaged))
        except CompileError:
            refused += 1
    assert refused > 100

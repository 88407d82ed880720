"""Tests that the counts and the structures that hooks write are read back."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from pathlib import Path

import pytest

from baretorch.machines.counts import COUNT_ROW, ROW_ROOM, read_rows
from baretorch.machines.hooks.structs import read_header
from baretorch.machines.types import Block
from baretorch.machines.unicorn.drivers import DogKind, RegisterKind
from baretorch.machines.unicorn.state import HEADER, ChipChange, ConsoleState, Doze, StopReason, Timer


def test_rows_become_blocks() -> None:
    memory = COUNT_ROW.pack(7, 3, 0x102, 0x200, 5, 0) + COUNT_ROW.pack(1, 0, 0, 0x100, 2, 0) + b"\xff" * COUNT_ROW.size
    assert read_rows(memoryview(memory), 2) == (Block(0x102, 0x200, 5, 7, 3), Block(0, 0x100, 2, 1, 0))


def test_a_part_of_the_rows_is_none() -> None:
    assert read_rows(memoryview(bytes(COUNT_ROW.size)), ROW_ROOM + 1) == ()


@pytest.mark.parametrize(
    "numbers", [StopReason, Doze, Timer, ConsoleState, ChipChange, RegisterKind, DogKind], ids=lambda n: n.__name__
)
def test_numbers_are_those_of_the_hooks(numbers: type[IntEnum]) -> None:
    own = {member.name: member.value for member in numbers}
    known = {name: value for name, value in own.items() if name in HEADER.constants}
    assert known and known == {name: HEADER.constants[name] for name in known}
    if numbers is not StopReason:  # it has some that only Python knows
        assert known == own


def test_a_header_becomes_structures(tmp_path: Path) -> None:
    header = tmp_path / "some.h"
    header.write_text(
        "#define MOST 3u /* of all */\n#define TEXT NAMED\nenum kind { FIRST, SECOND = 1 << 4, THIRD, LAST = -1 };\n"
        "typedef struct {\n    uint8_t a; /* odd; */\n    uint32_t b[2 * MOST][2], c;\n} inner;\n"
        "struct outer {\n    const inner *at, all[THIRD];\n    struct other *unknown;\n"
        "    int (*call)(void *x, int y);\n    struct outer *next;\n};\n"
    )
    read = read_header(header)
    assert read.constants == {"MOST": 3, "FIRST": 0, "SECOND": 16, "THIRD": 17, "LAST": -1}
    inner, outer = read.structs["inner"], read.structs["outer"]
    assert ctypes.sizeof(inner) == 4 * (1 + 12 + 1)
    assert ctypes.sizeof(outer) == 4 * 8 + 17 * ctypes.sizeof(inner)
    one = outer(next=ctypes.pointer(outer()))
    one.all[16].b[5][1] = 7
    assert one.all[16].b[5][1] == 7 and not one.next.contents.unknown

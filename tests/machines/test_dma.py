"""The engine that streams flash: a copy is there when it was waited for, and what breaks rules ends the emulation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.machine import UnicornMachine
from tests.machines.images import RUN, image
from tests.machines.mutants import LEFT

BODY = """\
#include "bt_reg.h"
#include "stream.h"

static const uint32_t words[8] = {{ 1, 2, 3, 4, 5, 6, 7, 8 }};
static uint32_t copied[8];

void __attribute__((noinline)) toy_run(const void *from, void *to)
{{
    (void)from;
    {0}
    for (uint32_t i = 0; i < 8; i++) {{
        ((volatile uint8_t *)to)[i] = (uint8_t)((volatile uint32_t *)copied)[i];
    }}
    {1}
}}
"""
START, BEGIN, WAIT = "bt_stream_start();", "bt_stream_begin(copied, words, 32);", "bt_stream_wait();"
BOARDS = ("pico", "pico2")


def answer(board: str, before: str, after: str = "", left: Mapping[str, int] | None = None) -> bytes:
    machine = UnicornMachine(image(board, BODY.format(before, after), outputs=8), RUN, left)
    return Link(machine).run([bytes(16)]).outputs[0]


@pytest.mark.parametrize("board", BOARDS)
def test_after_another_program(board: str) -> None:
    """Whose stream may have words left, and whose DMA may have been at work."""
    (left, *_), whole = LEFT["rp2040" if board == "pico" else "rp2350"], bytes(range(1, 9))
    assert answer(board, START + BEGIN + WAIT, left=left) == whole
    release = (
        f"BT_REG({0x4000F000 if board == 'pico' else 0x40023000:#x}u) = 4; for (volatile int i = 0; i < 99; i++) {{}}"
    )
    with pytest.raises(DeviceFault, match="words that another program requested come first"):
        answer(board, release + BEGIN + WAIT, left=left)


@pytest.mark.parametrize("board", BOARDS)
def test_a_copy(board: str) -> None:
    whole = bytes(range(1, 9))
    assert answer(board, START + BEGIN + WAIT) == whole
    assert answer(board, START + BEGIN, WAIT) != whole, "it is not there before it was waited for"
    assert answer(board, START + BEGIN + WAIT + BEGIN + WAIT + WAIT) == whole


def set_up(**changed: str) -> str:
    """The registers of the RP2040 one by one."""
    told = {
        "STREAM": "(uint32_t)words",
        "COUNTER": "8",
        "TO": "(uint32_t)copied",
        "COUNT": "8",
        "CTRL": "1 | 2 << 2 | 1 << 5 | 37 << 15",
    } | changed
    at = {"STREAM": 0x14000014, "COUNTER": 0x14000018, "TO": 0x50000004, "COUNT": 0x50000008, "CTRL": 0x5000000C}
    return START + "".join(f"BT_REG({at[name]:#x}u) = {value};" for name, value in told.items())


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (set_up(), ""),
        (BEGIN, "the engine is in reset"),
        (START + BEGIN + BEGIN, "while another one is under way"),
        (set_up(COUNT="7"), "stream and channel do not agree"),
        (set_up(STREAM="(uint32_t)words + 2"), "stream and channel do not agree"),
        (set_up(TO="0x30000000"), "where no memory is"),
        (set_up(CTRL="1 | 2 << 2 | 1 << 5 | 36 << 15"), "CTRL is "),
        (set_up(CTRL="1 | 2 << 2 | 1 << 4 | 37 << 15"), "CTRL is "),
    ],
)
def test_rules(before: str, text: str) -> None:
    if not text:
        assert answer("pico", before + WAIT) == bytes(range(1, 9))
        return
    with pytest.raises(DeviceFault, match=f"DMA is used wrongly: .*{text}"):
        answer("pico", before, WAIT)

"""Images that use two cores: right answers, clocks that agree, and no race or deadlock unnoticed."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from baretorch.firmware.elf import read_elf
from baretorch.machines.link import Link
from baretorch.machines.types import Access, CoresRace, DeviceHang
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.state import TURN
from tests.machines.images import RUN, TWO_CORES, image
from tests.machines.two_cores import ANSWER, BOARDS, DATA, INLINED, machine, run


@pytest.mark.parametrize("inlined", ["", INLINED])
@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@BOARDS
def test_both_cores_work(board: str, toolchain: str, inlined: str) -> None:
    heard: list[str] = []
    emulated = machine(board, inlined + TWO_CORES, toolchain)
    link = Link(emulated, heard.append)
    figures = []
    for _ in range(3):
        reply = link.run([DATA])
        assert reply.outputs == (ANSWER,)
        cores = emulated.cores()
        assert cores is not None and all(100 < n < 400 for n in cores.instructions)
        assert sum(b.instructions * b.executed for b in emulated.blocks()) == sum(cores.instructions)
        assert all(0 < waiting < cores.critical_path for waiting in cores.waiting)
        figures.append(cores)
    assert figures[1] == figures[2]  # of the first call, core 1 has come to its first meeting long ago
    assert emulated.instructions() == tuple(f.critical_path for f in figures)
    assert 64 < reply.stack_peak <= image(board, inlined + TWO_CORES, toolchain=toolchain, cores=2).ram.stack
    assert "".join(heard) == f"baretorch: toy on {board}, ready\n"


@BOARDS
def test_runs_are_the_same_each_time(board: str) -> None:
    assert run(board) == run(board)
    assert UnicornMachine(image(board), RUN).cores() is None


CONDITIONAL = """\
#include "cores.h"

void bt_core1_main(void)
{
    for (;;)
        __asm__ volatile("wfe");
}

static const uint32_t in_flash[4] = { 1, 2, 3, 4 };

/* What an IT block skips must not depend on who watches the memory that it reads and writes. */
#define ARGUMENT __attribute__((unused))
__attribute__((naked, noinline)) static uint32_t product(uint32_t a ARGUMENT, const uint32_t *from ARGUMENT,
                                                         uint32_t *to ARGUMENT, uint32_t less ARGUMENT)
{
    __asm__ volatile(".syntax unified\\n"
                     "cmp r3, #10\\n"
                     "ittt lt\\n"
                     "ldrlt ip, [r1]\\n"
                     "strlt ip, [r2]\\n"
                     "ldrdlt r1, r3, [r1, #8]\\n"
                     "cmp r0, #2\\n"
                     "blt 1f\\n"
                     "mul r0, r0, r1\\n"
                     "1: bx lr");
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    static uint32_t in_ram[4];
    const uint8_t *x = from;
    *(volatile uint8_t *)to = (uint8_t)(product(x[0], in_flash, in_ram, x[1]) + in_ram[0]);
}
"""


@pytest.mark.parametrize("timed", [False, True])
def test_watched_memory_does_not_change_conditional_instructions(timed: bool) -> None:
    built = image("pico2w", CONDITIONAL, inputs=2, outputs=1, cores=2)
    reply = Link(UnicornMachine(built, RUN, timed=timed)).run([bytes([6, 1])])
    assert reply.outputs == (bytes([6 * 3 + 1]),)


SPIN = """\
#include "cores.h"
static bt_meeting meeting;
static const uint32_t *loops;

__attribute__((naked, noinline)) static void spin(uint32_t n __attribute__((unused)))
{
    __asm__ volatile(".syntax unified\\n 1: subs r0, #1\\n bne 1b\\n bx lr"); /* 2 n + 1 instructions */
}

void bt_core1_main(void)
{
    for (;;) {
        bt_meet(&meeting, 1);
        spin(loops[1]);
        bt_meet(&meeting, 1);
        spin(loops[3]);
        bt_meet(&meeting, 1);
    }
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    loops = from;
    bt_meet(&meeting, 0);
    spin(loops[0]);
    bt_meet(&meeting, 0);
    spin(loops[2]);
    bt_meet(&meeting, 0);
    *(volatile uint8_t *)to = 1;
}
"""


@pytest.mark.parametrize(
    "loops",
    [
        (100_000, 1_000, 1_000, 100_000),
        (1_000, 100_000, 100_000, 1_000),
        (1_000, 100_000, 1_000, 100_000),
        (100_000, 1_000, 100_000, 1_000),
        (100, 70, 50, 80),
        (50_000, 50_000, 50_000, 50_000),
    ],
)
@BOARDS
def test_the_critical_path_is_the_slower_core_of_each_phase(board: str, loops: tuple[int, int, int, int]) -> None:
    """However the emulator lets them take turns. A meeting takes about 25 instructions of the one that comes last."""
    first0, first1, second0, second1 = loops
    _, cores = run(board, SPIN, data=struct.pack("<4I", *loops))
    path = 2 * (max(first0, first1) + max(second0, second1))
    assert path + 30 < cores.critical_path < path + 120
    for done, waited in zip((first0 + second0, first1 + second1), cores.waiting, strict=True):
        assert abs(cores.critical_path - waited - 2 * done) < 40


@pytest.mark.parametrize("turn", [1, 2, 3, 5, 7, 11, 40])
@BOARDS
def test_any_order_of_turns_gives_the_same(board: str, turn: int) -> None:
    """Cores that take turns after a few instructions meet in every state that bt_meet can be in."""
    emulated = machine(board)
    emulated._state.turn = turn
    link = Link(emulated)
    assert [link.run([DATA]).outputs for _ in range(3)] == [(ANSWER,)] * 3
    cores, usual = emulated.cores(), run(board)[1]
    assert cores is not None
    assert abs(cores.critical_path - usual.critical_path) < 30


def without_meeting(body: str, core: int, which: str) -> str:
    line = f"bt_meet(&meeting, {core}); /* {which} */\n"
    assert line in body
    return body.replace(line, "\n")


def race(board: str, body: str, calls: int = 1) -> CoresRace:
    with pytest.raises(CoresRace) as caught:
        run(board, body, calls)
    return caught.value


@BOARDS
def test_a_removed_meeting_is_a_race(board: str) -> None:
    body = without_meeting(without_meeting(TWO_CORES, 0, "between"), 1, "between")
    error = race(board, body)
    made = image(board, body, cores=2)
    elf = read_elf(made.elf.read_bytes())
    triples = next(s for s in elf.symbols if s.name == "triples")
    assert triples.address <= error.address < triples.address + 16
    assert error.phase == 1
    zero, one = error.accesses
    assert {(a.function, a.writes) for a in error.accesses} == {("triple", True), ("reverse", False)}
    assert (zero.core, one.core) == (0, 1)
    assert error.render() == (
        f"error: both cores touch the byte at {error.address:#010x} between two meetings\n"
        f"  have  {zero}\n"
        f"        {one}\n"
        "        phase 1 of the run\n"
        "  need  a meeting between the two, or bytes that only one core touches"
    )
    assert str(Access(1, True, 0x10000100, "triple", 0)) == "core 1 writes in triple"


RACES: dict[str, Callable[[str], str]] = {
    "one core leaves a meeting out": lambda body: without_meeting(body, 1, "between"),
    "the other leaves it out": lambda body: without_meeting(body, 0, "between"),
    "both write": lambda body: body.replace("y[i] = ", "y[0] = y[i] = "),
    "one writes what the other reads": lambda body: body.replace("reverse(0);", "reverse(0); y[HALF] += y[0];"),
    "the result is used before the end": lambda body: without_meeting(body, 0, "end").replace(
        "reverse(0);", "reverse(0); y[0] = y[HALF];"
    ),
}


@pytest.mark.parametrize("case", RACES)
@BOARDS
def test_other_races(board: str, case: str) -> None:
    """Also where the answer happens to be right."""
    body = RACES[case](TWO_CORES)
    assert body != TWO_CORES
    assert any(a.writes for a in race(board, body, calls=2).accesses)


@BOARDS
def test_what_both_only_read_is_no_race(board: str) -> None:
    body = TWO_CORES.replace("triples[i] = (uint8_t)(3 * x[i]);", "triples[i] = (uint8_t)(3 * x[i] + x[0] - x[0]);")
    body = body.replace("static uint8_t triples", "static volatile uint8_t triples").replace(
        "const uint8_t *x", "const volatile uint8_t *x"
    )
    assert run(board, body)[0] == ANSWER


ERRAND = """\
#include "cores.h"
static bt_meeting meeting;
static uint32_t question, answer;

void bt_core1_main(void)
{
    for (;;) {
        bt_meet(&meeting, 1);
        answer = question + 1;
        bt_meet(&meeting, 1);
    }
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    question = *(const uint8_t *)from;
    answer = 0;
    bt_meet(&meeting, 0);
    bt_meet(&meeting, 0);
    question = 0;
    *(uint8_t *)to = (uint8_t)answer;
}
"""


@pytest.mark.parametrize("inlined", ["", INLINED])
@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@BOARDS
def test_a_meeting_may_change_any_variable(board: str, toolchain: str, inlined: str) -> None:
    """Compilers must not keep values over it, even of variables that they see all uses of."""
    assert run(board, inlined + ERRAND, toolchain=toolchain)[0][0] == DATA[0] + 1


FLAGS = """\
#include "cores.h"
static bt_meeting meeting;
static uint8_t *y;

void bt_core1_main(void)
{
    for (;;) {
        bt_meet(&meeting, 1);
        for (volatile uint32_t i = 0; i < 30000; i++) {
        }
        y[0] = 7;
        bt_meet(&meeting, 1);
    }
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    (void)from;
    y = to;
    bt_meet(&meeting, 0); /* start: core 1 waits there */
    while (!bt_other_waits(&meeting, 0)) { /* done? */
        WAIT
    }
    bt_meet(&meeting, 0);
}
"""


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("wait", ["bt_wait_event();", ""])
@BOARDS
def test_a_core_can_ask_whether_the_other_is_done(board: str, wait: str, toolchain: str) -> None:
    """Asleep or busy in between: core 1 alone works, and the clock goes on. One that is busy asks for a whole turn."""
    answer, cores = run(board, INLINED + FLAGS.replace("WAIT", wait), toolchain=toolchain)
    assert answer[0] == 7
    assert 100_000 < cores.instructions[1] <= cores.critical_path + 40
    assert cores.waiting[1] < (100 if wait else 2 * TURN)
    if wait:
        assert cores.instructions[0] < 120 and cores.waiting[0] > 100_000


def hang(board: str, body: str) -> DeviceHang:
    with pytest.raises(DeviceHang) as caught:
        run(board, body)
    return caught.value


@pytest.mark.parametrize("end", ["return;", "for (;;) bt_wait_event();"])
@BOARDS
def test_a_core_that_never_comes(board: str, end: str) -> None:
    body = TWO_CORES.replace("        triple(HALF);", f"        triple(HALF);\n        {end}")
    have = hang(board, body).have
    assert have[0] == "the cores wait for each other for ever"
    assert have[1].startswith("core 0 at 0x") and have[1].endswith(" in bt_meet")
    assert have[2].endswith(" in toy_run")
    assert have[3].startswith("core 1 at 0x") and have[3].endswith(" in bt_core1_entry" if "ret" in end else "_main")

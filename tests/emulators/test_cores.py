"""Images that use two cores: right answers, clocks that agree, and no race, deadlock or wrong start unnoticed."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.emulators.boot_rom import Launch, boot_rom
from baretorch.emulators.link import Link
from baretorch.emulators.registers import KEPT
from baretorch.emulators.state import TURN
from baretorch.emulators.types import Access, Cores, CoresRace, DeviceFault, DeviceHang
from baretorch.emulators.unicorn import UnicornMachine
from baretorch.firmware.build import build
from baretorch.firmware.elf import read_elf
from baretorch.firmware.types import Image
from baretorch.targets.boards import load_board
from tests.emulators.images import GLUE, RUN, TWO_CORES, image

DATA = bytes(range(100, 116))
ANSWER = bytes((3 * DATA[15 - i] + i) % 256 for i in range(16))
INLINED = "#define BT_INLINE_KERNELS\n"
BOARDS = pytest.mark.parametrize("board", ["pico", "pico2w"])


def machine(board: str, body: str = TWO_CORES, toolchain: str | None = None) -> UnicornMachine:
    return UnicornMachine(image(board, body, toolchain=toolchain, cores=2), RUN)


def run(
    board: str, body: str = TWO_CORES, calls: int = 2, data: bytes = DATA, toolchain: str | None = None
) -> tuple[bytes, Cores]:
    """The answer and the figures of the last call."""
    emulated = machine(board, body, toolchain)
    link = Link(emulated)
    replies = [link.run([data]) for _ in range(calls)]
    cores = emulated.cores()
    assert cores is not None
    assert cores.critical_path == emulated.instructions()[-1]
    return replies[-1].outputs[0], cores


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


def with_driver(body: str, folder: Path, board: str = "pico2w") -> Image:
    """An image of TWO_CORES that starts core 1 otherwise: `body` is what bt_core1_start does."""
    source, driver = folder / "glue.c", folder / "other.c"
    source.write_text(GLUE.format(body=TWO_CORES, inputs=16, outputs=16))
    driver.write_text(f"""\
#include "bt_board.h"
#include "bt_image.h"
#include "bt_reg.h"
#define SEND(word) do {{ BT_REG(BT_CORES_BASE + 0x54u) = (word); __asm__ volatile("sev\\n\\twfe\\n\\twfe"); \\
    (void)BT_REG(BT_CORES_BASE + 0x58u); }} while (0)
#define VECTORS BT_REG(0xe000ed08u)
void bt_core1_start(void (*entry)(void), uint32_t *stack_top)
{{
    const uint32_t at = (uint32_t)(uintptr_t)entry, top = (uint32_t)(uintptr_t)stack_top;
    (void)at; (void)top;
    (void)BT_REG(BT_CORES_BASE + 0x58u);
    {body}
}}
""")
    real = load_board(board)
    assert real.chip.cores is not None
    runtime = Path("src/baretorch/runtime/cores").resolve()
    cores = replace(real.chip.cores, driver=os.path.relpath(driver.resolve(), runtime).removesuffix(".c"))
    changed = replace(real, chip=replace(real.chip, cores=cores))
    return replace(build("toy", changed, folder, [source], folder, RUN, cores=2), board=real)


WORDS = "SEND(0); SEND(0); SEND(1); SEND(VECTORS); SEND(top); SEND(at | 1);"


def test_the_words_start_core_1(tmp_path: Path) -> None:
    assert Link(UnicornMachine(with_driver(WORDS, tmp_path), RUN)).run([DATA]).outputs == (ANSWER,)


@pytest.mark.parametrize(
    ("words", "got"),
    [
        ("", "none"),
        ("SEND(0); SEND(0);", "0x0, 0x0"),
        ("SEND(0); SEND(0); SEND(2); SEND(VECTORS);", "0x0, 0x0, 0x2, 0x10000000"),
        ("SEND(1); SEND(VECTORS); SEND(0); SEND(top);", "0x1, 0x10000000, 0x0, 0x2007f000"),
    ],
)
def test_words_that_do_not_start_core_1(words: str, got: str, tmp_path: Path) -> None:
    """Core 0 goes on as if it had, until it waits for core 1."""
    with pytest.raises(DeviceHang) as caught:
        Link(UnicornMachine(with_driver(words, tmp_path), RUN)).run([DATA])
    assert caught.value.have[:2] == ("core 1 was never started", f"words that it got: {got}")
    assert caught.value.have[-2:] == ("core 1 in its boot ROM", "heard: baretorch: toy on pico2w, ready")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (WORDS.replace("at | 1", "at & ~1u"), "an entry without the Thumb bit"),
        (WORDS.replace("VECTORS", "0x10000100u"), "another vector table than core 0's"),
        (WORDS.replace("top", "top - 4"), "a stack pointer that is no multiple of 8 in RAM"),
        (WORDS.replace("top", "0x10000000u"), "a stack pointer that is no multiple of 8 in RAM"),
    ],
)
def test_core_1_is_not_started_just_anywhere(words: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceFault) as caught:
        Link(UnicornMachine(with_driver(words, tmp_path), RUN)).run([DATA])
    assert caught.value.what == "core 1 cannot be started so" and caught.value.have[0] == text


class Fifos:
    """A mailbox whose other end is the test."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.sent: list[int] = []

    def has_mail(self) -> bool:
        return bool(self.words)

    def take(self) -> int:
        return self.words.pop(0)

    def has_room(self) -> bool:
        return True

    def send(self, word: int) -> None:
        self.sent.append(word)


def launched(*words: int) -> tuple[list[int], Launch | None]:
    """What core 1 answered to each word, and where it was sent."""
    fifos = Fifos()
    rom = boot_rom(fifos)
    next(rom)
    assert fifos.sent == [0]  # it is there
    try:
        for word in words:
            fifos.words.append(word)
            next(rom)
    except StopIteration as end:
        return fifos.sent[1:], end.value
    return fifos.sent[1:], None


def test_the_boot_rom() -> None:
    good = (0, 0, 1, 0x100, 0x200, 0x301)
    launch = Launch(0x100, 0x200, 0x301)
    assert launched(*good) == (list(good), launch)
    assert launched(5, 1, 0x100, *good) == ([0, 1, 0x100, *good], launch)
    assert launched(1, 0x100, 0x200, *good) == ([1, 0x100, 0x200, *good], launch)
    assert launched(0, 0, 0x100, 0x200, 0x301) == ([0] * 5, None)
    assert launched(0, 1, 0, 1, 0x100, 0) == ([0, 1, 0, 1, 0x100, 0], None)


@pytest.mark.parametrize(("core", "call"), [(0, "triple(0);"), (1, "triple(HALF);")])
@BOARDS
def test_a_fault_names_the_core(board: str, core: int, call: str) -> None:
    with pytest.raises(DeviceFault) as caught:
        run(board, TWO_CORES.replace(call, f"{call} *(volatile uint32_t *)0x90000000u = 1;"))
    assert caught.value.what == f"the image stopped on core {core}: bad write of 4 bytes at 0x90000000"


# What the core does when it takes an exception, but for the mode: a frame on the stack, and the handler.
REPORT = """\
__asm__ volatile(
    ".syntax unified\\n ldr r0, =0x11223344\\n mov r1, r0\\n mov r2, r0\\n mov r3, r0\\n"
    "push {r0-r3}\\n push {r0-r3}\\n ldr r1, =0xfffffff9\\n mov lr, r1\\n ldr r1, =bt_fault_entry\\n bx r1\\n .ltorg");
"""


@pytest.mark.parametrize(("core", "call"), [(0, "triple(0);"), (1, "triple(HALF);")])
@BOARDS
def test_the_image_itself_tells_which_core_stopped(board: str, core: int, call: str) -> None:
    with pytest.raises(DeviceFault) as caught:
        run(board, TWO_CORES.replace(call, REPORT))
    assert caught.value.what.startswith(f"the device stopped: FAULT: core {core}: ")
    assert any(row.startswith("pc 0x11223344 lr 0x11223344") for row in caught.value.have)
    assert not any("overflow" in row for row in caught.value.have)


def overflowed(core: int) -> str:
    limit = "bt_core1_stack_limit" if core else "bt_stack_limit"
    lower = f"ldr r0, ={limit}\\n subs r0, #64\\n mov sp, r0\\n ldr r0, =0x11"
    return TWO_CORES.replace("triple(HALF);" if core else "triple(0);", REPORT.replace("ldr r0, =0x11", lower))


@pytest.mark.parametrize("core", [0, 1])
def test_a_stack_that_has_overflowed_is_told_of_its_core(core: int) -> None:
    with pytest.raises(DeviceFault) as caught:
        run("pico", overflowed(core))
    assert caught.value.what.startswith(f"the device stopped: FAULT: core {core}: ")
    address = image("pico", overflowed(core), cores=2).symbols["bt_core1_stack_limit" if core else "bt_stack_limit"]
    assert f"the stack has overflowed its limit {address:#010x}" in caught.value.have


@pytest.mark.parametrize("core", [0, 1])
def test_armv8m_stops_at_the_limit_of_each_core(core: int) -> None:
    """Which Unicorn has: so each core has set its own."""
    with pytest.raises(DeviceFault, match=f"the image stopped on core {core}: an exception"):
        run("pico2w", overflowed(core))


def test_core_1_turns_its_fpu_on() -> None:
    emulated = machine("pico2w")
    Link(emulated).run([DATA])
    assert [core.state.kept[KEPT["CPACR"]] for core in emulated._cores] == [0xF << 20] * 2
    assert {core.state.kept[KEPT["VTOR"]] for core in emulated._cores} == {0x10000000}

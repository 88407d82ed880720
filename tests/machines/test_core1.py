"""The second core: how it is started, and how it stops."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault, DeviceHang
from baretorch.machines.unicorn import core
from baretorch.machines.unicorn.boot_rom import Launch, Mailbox, boot_rom
from baretorch.machines.unicorn.drivers import KEPT
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.silicon import ChipModel
from baretorch.options import Console
from baretorch.targets.boards import load_board
from tests.machines.images import GLUE, RUN, TWO_CORES, image
from tests.machines.two_cores import ANSWER, BOARDS, DATA, machine, run
from tests.symbols import symbols_of


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
int bt_core1_start(void (*entry)(void), uint32_t *stack_top)
{{
    const uint32_t at = (uint32_t)(uintptr_t)entry, top = (uint32_t)(uintptr_t)stack_top;
    (void)at; (void)top;
    (void)BT_REG(BT_CORES_BASE + 0x58u);
    {body}
    return 1;
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


@pytest.mark.parametrize(("answers", "console"), [(0, Console.UART), (3, Console.USB)])
def test_a_core_1_that_does_not_answer(answers: int, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead core 1, and one that dies on the way, make the image report an error for every request."""

    def broken(mailbox: Mailbox) -> Generator[None, None, None]:
        for word, _ in zip((0, 0, 1), range(answers), strict=False):
            mailbox.send(word)
            yield
            mailbox.take()
        while True:
            yield

    monkeypatch.setattr(core, "boot_rom", broken)
    made = image("pico", TWO_CORES, inputs=64, outputs=64, cores=2, console=console)
    stopped = UnicornMachine(made, RUN)
    for _ in range(2):
        with pytest.raises(DeviceFault, match="FAULT: core 1 does not start"):
            Link(stopped).hello()


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


@pytest.mark.parametrize("still_runs", [True, False])
@pytest.mark.parametrize(("board", "power", "bit"), [("pico", 0x40010000, 16), ("pico2w", 0x40018000, 24)])
def test_a_core_1_that_still_runs_is_reset(
    board: str, power: int, bit: int, still_runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reset of a debugger has reached core 0 alone: core 1 answers nothing until it has been forced off. One that
    answers is left alone, because debuggers lose a core that is off."""
    off = [(power + 0x2004, 1 << bit), (power + 0x3004, 1 << bit)]
    wrote: list[tuple[int, int]] = []
    write = ChipModel.write

    def note(model: ChipModel, address: int, value: int) -> bool:
        if address & ~0x3FFF == power and address & 0xFFF == 4:
            wrote.append((address, value))
        return write(model, address, value)

    def busy(mailbox: Mailbox) -> Generator[None, None, Launch]:
        while still_runs and wrote != off:
            yield
        return (yield from boot_rom(mailbox))

    monkeypatch.setattr(ChipModel, "write", note)
    monkeypatch.setattr(core, "boot_rom", busy)
    assert run(board)[0] == ANSWER
    assert wrote == (off if still_runs else [])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (WORDS.replace("at | 1", "at & ~1u"), "an entry without the Thumb bit"),
        (WORDS.replace("VECTORS", "0x10000100u"), "another vector table than core 0's"),
        (WORDS.replace("top", "top - 4"), "a stack pointer that is not a multiple of 8 in RAM"),
        (WORDS.replace("top", "0x10000000u"), "a stack pointer that is not a multiple of 8 in RAM"),
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
    """Return the answers of core 1 to each word, and its start address."""
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
def test_the_image_itself_reports_which_core_stopped(board: str, core: int, call: str) -> None:
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
def test_a_stack_overflow_is_reported_with_its_core(core: int) -> None:
    with pytest.raises(DeviceFault) as caught:
        run("pico", overflowed(core))
    assert caught.value.what.startswith(f"the device stopped: FAULT: core {core}: ")
    elf = image("pico", overflowed(core), cores=2).elf
    address = symbols_of(elf)["bt_core1_stack_limit" if core else "bt_stack_limit"]
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

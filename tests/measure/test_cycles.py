"""Cycles of code whose cost the manuals say."""

from __future__ import annotations

import pytest

from baretorch.firmware.elf import ALLOC, AVR, EXECUTE, Elf, Section
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.types import Block, FlashReads
from baretorch.measure.cycles import (
    Cycles,
    Flash,
    Listing,
    Time,
    cycles_json,
    cycles_of,
    read_listing,
    shared_flash,
    time_words,
    unpaid_flash,
)
from baretorch.targets.boards import load_board
from baretorch.targets.cpus import CPUS
from baretorch.targets.cycles import Kind, Work
from baretorch.targets.flash import Waits
from tests.machines.images import RUN, image
from tests.machines.test_machines import DATA, LOOP, NAKED


def cycles(board: str, code: str) -> Cycles:
    made = image(board, NAKED.format(code))
    machine = open_machine(made, RUN)
    Link(machine).run([DATA])
    blocks = machine.blocks()
    machine.close()
    timing = made.board.chip.cpu.timing
    assert timing is not None
    return cycles_of(blocks, read_listing(made), timing)


@pytest.mark.parametrize(
    ("board", "code", "expected"),
    [
        # MOVS, 100 x (SUBS, BNE), 99 jumps, BX: M0+ refills its pipeline in one cycle, M0 in two.
        ("mps2-an385-v6m", LOOP, 1 + 200 + 99 + 2),
        ("microbit", LOOP, 1 + 200 + 2 * 99 + 3),
        (
            "pico",
            ".syntax unified\\n push {r4, lr}\\n ldr r0, [r1]\\n muls r0, r1, r0\\n str r0, [r1]\\n pop {r4, pc}",
            3 + 2 + 1 + 2 + 5,
        ),
        # PUSH, ADR, ADDS, BLX and BX: a jump to where a register says costs as much with a link as without; POP.
        (
            "pico",
            ".syntax unified\\n push {r4, lr}\\n adr r0, 1f\\n adds r0, #1\\n blx r0\\n pop {r4, pc}\\n"
            " .align 2\\n 1: bx lr",
            3 + 1 + 1 + 2 + 2 + 5,
        ),
    ],
)
def test_armv6m_is_known_to_the_cycle(board: str, code: str, expected: int) -> None:
    assert cycles(board, code) == Cycles(expected, expected, expected)


def test_loads_that_follow_each_other_overlap() -> None:
    alone = cycles("mps2-an386", "ldr r2, [r1]\\n nop\\n ldr r3, [r1]\\n nop\\n bx lr")
    together = cycles("mps2-an386", "ldr r2, [r1]\\n ldr r3, [r1]\\n nop\\n nop\\n bx lr")
    assert alone.expected == together.expected + 1
    assert (alone.best, alone.worst) == (together.best, together.worst) == (6, 10)


def test_every_core_has_a_table_with_a_source() -> None:
    assert {cpu.name for cpu in CPUS if cpu.timing is None} == {"host", "computer", "cv32e40p"}  # the last is simulated
    for timing in (cpu.timing for cpu in CPUS if cpu.timing is not None):
        assert timing.source
        for cost in (timing.other, *timing.costs.values()):
            assert cost.best <= cost.expected <= cost.worst
            assert cost.taken[1] <= cost.taken[0] <= cost.taken[2]
            assert cost.paired is None or cost.best <= cost.paired <= cost.expected


def test_cycles_are_a_sum() -> None:
    time = Time(Cycles(1000, 900, 1200), Flash(Cycles(500, 400, 700), 80, 3, 7))
    told = cycles_json(time, load_board("pico").chip)
    assert (told["cycles"], told["core_cycles"], told["flash_cycles"]) == (1500, 1000, 500)
    assert (told["cycles_range"], told["flash_cycles_range"]) == ([1300, 1900], [400, 700])
    assert (told["time_ms"], told["flash_bytes"], told["flash_misses"]) == (0.012, 80, {"code": 3, "data": 7})
    assert "RP2040" in told["flash_source"]


def test_flash_that_is_not_simulated_is_not_free() -> None:
    core = Time(Cycles(1000, 900, 1200), None)
    keys = ("cycles", "flash_cycles", "flash_misses", "flash_source")
    assert [cycles_json(core, load_board("pico").chip)[key] for key in keys] == [1000, None, None, None]
    assert [cycles_json(core, load_board("mps2-an386").chip)[key] for key in keys] == [1000, 0, None, None]
    assert set(cycles_json(None, load_board("host").chip).values()) == {None}


@pytest.mark.parametrize(
    ("board", "words", "flash"),
    [
        ("arduino-uno", "ms at 16 MHz", ""),
        ("arduino-mega", "ms at 16 MHz", ""),
        ("mps2-an386", "ms at 25 MHz, estimated", "; waits for flash are not included"),
    ],
)
def test_only_what_is_estimated_is_called_so(board: str, words: str, flash: str) -> None:
    chip, one = load_board(board).chip, Cycles(100, 100, 100)
    assert time_words(one, chip)[1] == words and unpaid_flash(Time(one, None), chip) == flash


@pytest.mark.parametrize(
    ("computing", "expected"),
    [(1000, 300), (100, 400)],  # flash is busy 500 cycles in all
)
def test_cores_share_flash(computing: float, expected: float) -> None:
    reads = [FlashReads(0, 0, 1, 2, 12, Waits(200, 100, 250)), FlashReads(1, 0, 0, 3, 12, Waits(300, 150, 350))]
    found = shared_flash(reads, Cycles(computing, computing, computing))
    assert found == Flash(Cycles(expected, 150, 600), 24, 1, 5)


@pytest.mark.parametrize(("skipped", "kind"), [("0000", Kind.SKIP), ("940c 091a", Kind.SKIP_LONG)])
def test_a_skip_of_avr_depends_on_what_it_skips(skipped: str, kind: Kind) -> None:
    code = b"".join(int(word, 16).to_bytes(2, "little") for word in f"1012 {skipped}".split())  # cpse r1, r2
    text = Section(1, ".text", 1, ALLOC | EXECUTE, 0, len(code), 0, 0, code)
    listing = Listing(Elf(32, AVR, 5, 0, (text,), (), (), ()))
    assert [i.work for i in listing.block(Block(0, 0, 1, 1, 0))] == [Work(kind)]

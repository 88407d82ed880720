"""Cycles of code whose cost the manuals say."""

from __future__ import annotations

import pytest

from baretorch.emulators import open_machine
from baretorch.emulators.link import Link
from baretorch.report.cycles import Cycles, cycles_of, read_listing
from baretorch.targets.cpus import CPUS
from baretorch.targets.cycles import TIMINGS
from tests.emulators.images import RUN, image
from tests.emulators.test_machines import DATA, LOOP, NAKED


def cycles(board: str, code: str) -> Cycles:
    made = image(board, NAKED.format(code))
    machine = open_machine(made, RUN)
    Link(machine).run([DATA])
    blocks = machine.blocks()
    machine.close()
    return cycles_of(blocks, read_listing(made), TIMINGS[made.board.chip.cpu.name])


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
    assert set(TIMINGS) == {cpu.name for cpu in CPUS} - {"host"}
    for timing in TIMINGS.values():
        assert timing.source
        for cost in (timing.other, *timing.costs.values()):
            assert cost.best <= cost.expected <= cost.worst
            assert cost.taken[1] <= cost.taken[0] <= cost.taken[2]
            assert cost.paired is None or cost.best <= cost.paired <= cost.expected

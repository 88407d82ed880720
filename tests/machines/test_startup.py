"""Start-up code with mistakes in it does not pass on the emulated chips; see mutants.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.machines.mutants import (
    BOARDS,
    FREE,
    LEFT,
    USB_BOARDS,
    Outcome,
    behaves_otherwise,
    mutants,
    noticed,
    outcomes,
    workshop,
)

ROOT = Path(__file__).resolve().parents[2]
ENOUGH = 0.9  # of the mistakes must be noticed
SAMPLE = 13  # every so many-th mutant is tried in the fast tests


def judge(found: list[Outcome]) -> None:
    wrong = [o for o in found if o.free is None]
    seen = [o for o in wrong if o.noticed is not None]
    assert len(seen) >= ENOUGH * len(wrong), [o for o in wrong if o.noticed is None]
    assert [o for o in found if o.free is not None and o.noticed is not None] == [], "said to be no mistake"


@pytest.mark.parametrize("board", BOARDS)
def test_without_a_mistake_it_starts(board: str) -> None:
    """It starts from power-up, and after each other program that may have run before."""
    made = workshop(board).image
    assert noticed(made) is None
    assert all(behaves_otherwise(made, left) is None for left in LEFT.get(made.board.chip.name, ()))


def test_some_mistakes_are_noticed() -> None:
    found = [o for board in BOARDS for o in outcomes(board, SAMPLE)]
    assert len(found) > 15
    judge(found)


def test_the_fault_that_was_shipped() -> None:
    """Selection and auxiliary source of the RP2350's core changed in one write, which stops it for ever."""
    (mutant,) = (m for m in mutants("pico2") if m.steps == ("CLK_SYS_CTRL_CLEAR",) and m.what.startswith("without"))
    assert noticed(workshop("pico2").build(mutant)) is not None


def test_what_is_no_mistake_exists() -> None:
    """Each entry of the list speaks of a mutant that there is."""
    there = {
        (name, m.steps)
        for b in (*BOARDS, *USB_BOARDS)
        for m in mutants(b)
        for name in (m.file.name, f"{m.file.name} on {b}")
    }
    listed = {(file, steps) for file, table in FREE.items() for pairs in table.values() for steps in pairs}
    assert listed <= there


@pytest.mark.slow
@pytest.mark.parametrize("board", USB_BOARDS)
def test_mistakes_with_usb(board: str) -> None:
    assert noticed(workshop(board).image) is None
    found = outcomes(board)
    assert len(found) > 10
    judge(found)


@pytest.mark.slow
def test_all_mistakes_and_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "path", sys.path)
    from make_startup_table import PAGE, page

    found = {board: outcomes(board) for board in BOARDS}
    for each in found.values():
        judge(each)
    assert PAGE.read_text() == page(found), "`python tools/make_startup_table.py`"

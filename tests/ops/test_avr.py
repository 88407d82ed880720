"""The case table on an emulated AVR, as far as it fits: there constants are in flash, another address space than RAM,
and an int has 16 bits. `make test` runs some cases, `make test-all` all integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.targets.features import ANY_CPU
from tests.ops.arrange import spread
from tests.ops.case import Case, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated
from tests.ops.merge import merged

BOARD = "arduino-mega"
ROOM = 5000  # bytes of RAM for the cases of an image
PER_IMAGE = {"speed": 16, "size": 4}  # cases: their pointers, and copies of their parameters, are on the stack
QUICK = (
    "qlinear one by one",
    "qconv2d one channel",
    "lookup",
    "qsoftmax two",
    "qattention masked",
    "qgru constant state",
)


@cache
def ram(case: Case) -> int:
    """Return about the RAM that a case takes; 0 if it does not fit."""
    graph = merged([case])[0]
    try:
        plan = spread(make_plan(graph, load_board(BOARD)))
    except CompileError:
        return 0
    copied = sum(c.data.nbytes for c in plan.layout.constants if c.name in plan.layout.copies)
    return plan.arena + copied + 64


def integers(case: Case) -> bool:
    return all(a.dtype.kind != "f" for a in (*case.arrays(), *run_reference([case])[0]))


def own_kernel(case: Case) -> bool:
    plan = make_plan(merged([case])[0], load_board(BOARD))
    return any(step.kernel.needs != ANY_CPU for step in plan.steps)


def batches(cases: Sequence[Case], most: int) -> Iterator[list[Case]]:
    """Yield batches of as many cases as an image holds, and at most `most`."""
    batch: list[Case] = []
    for case in cases:
        if batch and (sum(map(ram, [*batch, case])) > ROOM or len(batch) == most):
            yield batch
            batch = []
        batch.append(case)
    yield batch


def check(cases: Sequence[Case], folder: Path, optimize: str) -> None:
    for number, some in enumerate(batches(cases, PER_IMAGE[optimize])):
        outputs = run_emulated(some, BOARD, folder / str(number), optimize)
        for case, have, need in zip(some, outputs, run_reference(some), strict=True):
            case.check(have, need)


def test_some_cases(tmp_path: Path) -> None:
    check([case for case in TABLE if case.name in QUICK], tmp_path, "size")


@pytest.mark.slow
@pytest.mark.parametrize("optimize", ["speed", "size"])
def test_integers(tmp_path: Path, optimize: str) -> None:
    """Bit for bit."""
    cases = [case for case in TABLE if 0 < ram(case) < ROOM and integers(case)]
    assert len(cases) > 350
    check(cases, tmp_path, optimize)

"""Kernels with their output in their input, at exactly the distance they name: not a bit may change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from baretorch.machines.host_program import computer
from baretorch.ops.helpers.overlap import distance
from baretorch.plan import make_plan
from baretorch.plan.schedule import Step
from baretorch.targets.boards import load_board
from tests.ops.arrange import overlappable, touching
from tests.ops.case import Case, Outputs
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated
from tests.ops.host import run_host

COPIES = 3  # of each case: apart, over one input, and over another if there is one
PER_IMAGE = 12  # cases; of more, compilers place constants after the call, and busy machines miss the deadline


@pytest.mark.parametrize(
    ("every", "inline"),
    [(6, False), (18, True), *(pytest.param(1, i, marks=pytest.mark.slow) for i in (False, True))],
)
def test_portable_kernels(every: int, inline: bool) -> None:
    cases = overlappable(TABLE, load_board("host"))[::every]  # each takes long to compile
    assert len(cases) > 300 / every
    fast = ("-O2", "-fstrict-aliasing")  # an SDK does not say that tensors share bytes
    check(cases, run_host(cases * COPIES, inline, lambda plan: touching(plan, COPIES), fast))


def test_kernels_for_computers() -> None:
    cases = overlappable(TABLE, computer())
    assert len(cases) > 20
    fast = ("-O2", "-fstrict-aliasing")
    check(cases, run_host(cases * COPIES, False, lambda plan: touching(plan, COPIES), fast, board=computer()))


@pytest.mark.parametrize(
    ("every", "board"),
    [
        (6, "mps2-an386"),
        (12, "mps2-an385-v6m"),
        (12, "mps3-an547"),
        (12, "virt-rv32"),
        *(
            pytest.param(1, b, marks=pytest.mark.slow)
            for b in ("mps2-an386", "mps2-an385-v6m", "mps3-an547", "virt-rv32", "cluster4-soc")
        ),
    ],
)
def test_kernels_for_a_cpu(every: int, board: str, tmp_path: Path) -> None:
    cases = overlappable(TABLE, load_board(board))[::every]
    for start in range(0, len(cases), PER_IMAGE):
        some = cases[start : start + PER_IMAGE]
        arranged = run_emulated(some * COPIES, board, tmp_path, "size", arrange=lambda plan: touching(plan, COPIES))
        check(some, arranged)


def test_kernels_that_may_be_nearer_in_whole_pixels(tmp_path: Path) -> None:
    """Every third: the others are among those of all kernels."""
    board = load_board("mps2-an385-v6m")
    cases = [case for case in overlappable(TABLE, board) if any(map(nearer, make_plan(case.graph(), board).steps))]
    assert len(cases) > 10
    some = cases[::3]
    check(some, run_emulated(some * COPIES, board.name, tmp_path, "size", arrange=lambda plan: touching(plan, COPIES)))


def nearer(step: Step) -> bool:
    found, (distance, *_) = step.kernel.nearer(step.call), (*step.distances, None)
    return found is not None and distance is not None and found.distance < distance


def check(cases: Sequence[Case], outputs: Sequence[Outputs]) -> None:
    """Check that all copies are equal."""
    assert len(outputs) == len(cases) * COPIES
    for i, got in enumerate(outputs):
        case = cases[i % len(cases)]
        for have, want in zip(got, outputs[i % len(cases)], strict=True):
            assert have.tobytes() == want.tobytes(), f"{case.name}, copy {i // len(cases)}"


def test_the_distance_is_what_the_slowest_reader_needs() -> None:
    reads, writes = np.array([0, 4, 8]), np.array([4, 8, 12])
    assert distance(reads, writes, 0) == 0
    assert distance(reads, writes, 1) == 4
    assert distance(reads, writes, 2) == 8
    assert distance(np.array([0, 4, 0]), writes, 0) == 8, "the third group reads the first byte again"
    assert distance(reads[:0], writes[:0], 1) == 0

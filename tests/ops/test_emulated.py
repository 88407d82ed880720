"""The case table on emulated CPUs: every kernel variant that the CPU would use, equal to the reference."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.ops.case import Case, Outputs, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated

BOARDS = ["mps2-an385-v6m", "mps2-an386", "mps2-an505", "mps3-an547", "virt-rv32"]
QUICK = {("mps2-an386", "size")} | {(b, "speed") for b in BOARDS}  # kernels out of line elsewhere in `make test-all`


def images() -> list[object]:
    """What is built, each by one worker, who then runs all its cases (tests/conftest.py knows their names)."""
    pairs = [(b, optimize) for optimize in ("speed", "size") for b in BOARDS]
    return [pytest.param(p, marks=() if p in QUICK else pytest.mark.slow, id="-".join(p)) for p in pairs]


@pytest.fixture(scope="module", params=images())
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outputs]:
    name, optimize = request.param
    outputs = run_emulated(TABLE, name, tmp_path_factory.mktemp(name), optimize)
    return {c.name: y for c, y in zip(TABLE, outputs, strict=True)}


@pytest.mark.parametrize("case", TABLE, ids=lambda c: c.name)
def test_the_cpu_computes_the_reference(case: Case, board: Mapping[str, Outputs]) -> None:
    case.check(board[case.name], run_reference([case])[0])

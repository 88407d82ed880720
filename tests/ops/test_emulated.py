"""The case table on emulated CPUs: every kernel variant that the CPU would use, equal to the reference."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.ops.case import Case, Outputs, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated

BOARDS = ["mps2-an385-v6m", "mps2-an386", "mps2-an505", "mps3-an547", "virt-rv32"]
# Kernels out of line; on the other CPUs in `make test-all`.
SIZE = [pytest.param((b, "size"), marks=() if b == "mps2-an386" else pytest.mark.slow) for b in BOARDS]


@pytest.fixture(scope="module", params=[*((b, "speed") for b in BOARDS), *SIZE], ids="-".join)
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outputs]:
    name, optimize = request.param
    outputs = run_emulated(TABLE, name, tmp_path_factory.mktemp(name), optimize)
    return {c.name: y for c, y in zip(TABLE, outputs, strict=True)}


@pytest.mark.parametrize("case", TABLE, ids=lambda c: c.name)
def test_the_cpu_computes_the_reference(case: Case, board: Mapping[str, Outputs]) -> None:
    case.check(board[case.name], run_reference([case])[0])

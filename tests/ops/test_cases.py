"""The ladder over the case table: PyTorch -> NumPy reference -> portable C on the host with sanitizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from baretorch.machines.host_program import computer
from baretorch.ops import OPS, PLAN_OPS
from baretorch.ops.conv2d import Conv2d
from tests.ops.arrange import with_own_kernels
from tests.ops.case import Case, Outputs, run_reference, run_torch
from tests.ops.cases import TABLE
from tests.ops.host import CLANG, run_host


def by_name(case: Case) -> str:
    return case.name


INLINED = pytest.param(True, id="inlined", marks=pytest.mark.slow)  # as the emulated CPUs have it in `make test`


@pytest.fixture(scope="module", params=[pytest.param(False, id="out-of-line"), INLINED])
def host(request: pytest.FixtureRequest) -> Mapping[str, Outputs]:
    outputs = run_host(TABLE, inline=request.param)
    return {c.name: y for c, y in zip(TABLE, outputs, strict=True)}


@pytest.mark.parametrize("case", TABLE, ids=by_name)
def test_reference_means_what_pytorch_does(case: Case) -> None:
    case.check(run_reference([case])[0], run_torch([case])[0])


@pytest.mark.parametrize("case", TABLE, ids=by_name)
def test_portable_c_is_the_reference(case: Case, host: Mapping[str, Outputs]) -> None:
    case.check(host[case.name], run_reference([case])[0])


def test_kernels_for_computers_are_the_reference_too() -> None:
    cases = with_own_kernels(TABLE, computer())
    assert len(cases) > 40
    portable, wide = run_host(cases, inline=False), run_host(cases, inline=False, board=computer())
    for case, found, want in zip(cases, wide, portable, strict=True):
        case.check(found, run_reference([case])[0])
        if isinstance(case.op, Conv2d):
            assert [y.tobytes() for y in found] == [y.tobytes() for y in want], case.name


def first_of_each_operator() -> list[Case]:
    return list({type(c.op): c for c in reversed(TABLE)}.values())


@pytest.mark.parametrize(
    "cases",
    [pytest.param(first_of_each_operator(), id="one-each"), pytest.param(TABLE, id="all", marks=pytest.mark.slow)],
)
def test_clang_computes_the_reference_too(cases: Sequence[Case]) -> None:
    outputs = run_host(cases, inline=False, flags=("-O1", "-fno-sanitize=all"), compiler=CLANG)
    for case, found, want in zip(cases, outputs, run_reference(cases), strict=True):
        case.check(found, want)


def test_every_operator_has_cases() -> None:
    """Those that only a plan has may have some."""
    assert {row.op for row in OPS} == {type(c.op) for c in TABLE} - {row.op for row in PLAN_OPS}
    assert len({c.name for c in TABLE}) == len(TABLE)

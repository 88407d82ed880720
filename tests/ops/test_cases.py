"""The ladder over the case table: PyTorch -> NumPy reference -> portable C on the host with sanitizers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from baretorch.ops import OPS
from tests.ops.case import Case, Outputs, run_reference, run_torch
from tests.ops.cases import TABLE
from tests.ops.host import run_host


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


def test_every_operator_has_cases() -> None:
    ops = {row.op for row in OPS}
    assert ops == {type(c.op) for c in TABLE}
    assert len({c.name for c in TABLE}) == len(TABLE)

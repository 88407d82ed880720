"""Random shapes pass the same ladder of tests."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.ops import strategies
from tests.ops.case import Case, run_reference, run_torch
from tests.ops.host import run_host

ANY = st.one_of(
    strategies.conv2d(),
    strategies.max_pool2d(),
    strategies.avg_pool2d(),
    strategies.broadcast(),
    strategies.reduction(),
    strategies.layer_norm(),
    strategies.moving(),
    strategies.indexing(),
)

repeatable = settings(derandomize=True, database=None, deadline=None)


def against_pytorch(case: Case) -> None:
    case.check(run_reference([case])[0], run_torch([case])[0])


@settings(repeatable, max_examples=150)
@given(strategies.conv2d())
def test_conv2d(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=150)
@given(strategies.max_pool2d())
def test_max_pool2d(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=150)
@given(strategies.avg_pool2d())
def test_avg_pool2d(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=150)
@given(strategies.broadcast())
def test_broadcasting(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=100)
@given(strategies.reduction())
def test_reductions(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=100)
@given(strategies.layer_norm())
def test_layer_norm(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=150)
@given(strategies.moving())
def test_moving(case: Case) -> None:
    against_pytorch(case)


@settings(repeatable, max_examples=150)
@given(strategies.indexing())
def test_indexing(case: Case) -> None:
    against_pytorch(case)


@settings(
    repeatable,
    max_examples=3,
    phases=[Phase.generate],  # a compiler run each: many cases at once, and no shrinking
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(st.lists(ANY, min_size=60, max_size=60))
def test_portable_c(many: list[Case]) -> None:
    for case, got, want in zip(many, run_host(many, inline=False), run_reference(many), strict=True):
        case.check(got, want)

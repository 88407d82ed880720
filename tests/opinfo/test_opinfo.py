"""PyTorch's own samples: whatever is compiled computes what PyTorch does, and every operator compiles somewhere."""

from __future__ import annotations

import pytest

from tests.opinfo.operators import NONE_PASSES, OPERATORS
from tests.opinfo.samples import Kind, outcomes

QUICK = (
    "add",
    "cat",
    "gather",
    "matmul",
    "nn.functional.conv2d",
    "nn.functional.gelu",
    "nn.functional.linear",
    "nn.functional.max_pool2d",
    "softmax",
    "sum",
)


def _check(name: str, most: int) -> None:
    found = outcomes(name, most)
    assert found, "the database has no sample of this operator"
    bugs = [str(o) for o in found if o.kind in (Kind.WRONG, Kind.CRASHED)]
    assert not bugs, "\n".join(bugs)
    passes = any(o.kind is Kind.PASSED for o in found)
    assert passes != (name in NONE_PASSES), "\n".join(map(str, found))


@pytest.mark.parametrize("name", QUICK)
def test_few_samples(name: str) -> None:
    _check(name, most=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_samples(name: str) -> None:
    _check(name, most=6)

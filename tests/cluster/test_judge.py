"""The simulator against the core's RTL: each request for memory in the same cycle, with the same data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.judge import missing
from tests.cluster.running import Ran, chip, run_program
from tests.cluster.sequences import random_program

GOLDEN = Path(__file__).with_name("golden") / "rtl.json"
LENGTH = 300
WHY = missing()

pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")


def first_difference(one: Ran, other: Ran) -> object:
    pairs = zip(one.requests, other.requests, strict=False)
    return next(((i, a, b) for i, (a, b) in enumerate(pairs) if a != b), (len(one.requests), len(other.requests)))


def agree(seed: int, length: int, cores: int, banks: int = 16, wait: int = 10) -> Ran:
    code = random_program(seed, length, cores)
    rtl = run_program(code, chip(cores, banks, wait), rtl=True)
    ours = run_program(code, chip(cores, banks, wait))
    assert rtl.end is not None, rtl.report
    assert rtl.requests == ours.requests, first_difference(rtl, ours)
    assert (rtl.let_go, rtl.memory, rtl.end) == (ours.let_go, ours.memory, ours.end)
    return rtl


@pytest.mark.parametrize(("cores", "seeds"), [(1, range(4000, 4008)), (3, range(4008, 4009))])
def test_some_thousand_random_instructions(cores: int, seeds: range) -> None:
    """Registers are in memory in the end."""
    requests = sum(len(agree(seed, 500, cores).requests) for seed in seeds)
    assert requests > 200 * len(seeds) * cores


@pytest.mark.slow
def test_a_hundred_thousand_random_instructions_on_one_core() -> None:
    requests = sum(len(agree(seed, 500, 1).requests) for seed in range(1000, 1200))
    assert requests > 40_000


@pytest.mark.slow
@pytest.mark.parametrize(("banks", "wait"), [(16, 10), (8, 3), (1, 0), (0, 25)])
def test_random_instructions_on_eight_cores(banks: int, wait: int) -> None:
    for seed in range(2000, 2008):
        agree(seed, 300, 8, banks, wait)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [2, 3, 5])
def test_other_numbers_of_cores(cores: int) -> None:
    for seed in range(3000, 3005):
        agree(seed, 300, cores)


@pytest.mark.slow
def test_golden_figures_are_those_of_the_rtl() -> None:
    for key, figures in json.loads(GOLDEN.read_text()).items():
        cores, seed = map(int, key.split(":"))
        rtl = run_program(random_program(seed, LENGTH, cores), chip(cores), rtl=True)
        assert [rtl.end, rtl.digest()] == figures


if __name__ == "__main__":
    rows = {}
    for cores, seeds in ((1, range(24)), (8, range(3)), (4, range(2))):
        for seed in seeds:
            ran = run_program(random_program(seed, LENGTH, cores), chip(cores), rtl=True)
            rows[f"{cores}:{seed}"] = [ran.end, ran.digest()]
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(rows, indent=0) + "\n")

"""ONNX's own node tests: what is compiled computes what they say, in NumPy and as C; the rest is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from baretorch.ir.graph import Array, Graph
from tests.onnx_nodes.cases import ROUNDING, Kind, Outcome, difference, node_cases, outcome
from tests.onnx_nodes.files import outcomes_by_folder
from tests.onnx_nodes.page import PAGE, file_section, page, recorded
from tests.ops.host import SANITIZERS, run_host

QUICK = 12  # every so many-th case
AT_ONCE = 60  # graphs in a program


@dataclass(frozen=True)
class Compiled:
    """A case that passed, as a model to be merged with others."""

    made: Outcome

    def graph(self) -> Graph:
        assert self.made.graph is not None
        return self.made.graph

    def arrays(self) -> tuple[Array, ...]:
        return self.made.inputs


@cache
def outcomes(every: int) -> dict[str, Outcome]:
    names = sorted(node_cases())[::every]
    return {name: outcome(node_cases()[name]) for name in names}


def check(found: dict[str, Outcome]) -> None:
    bugs = [str(o) for o in found.values() if o.kind in (Kind.WRONG, Kind.CRASHED)]
    assert not bugs, "\n".join(bugs)


def check_c(found: Sequence[Outcome], flags: Sequence[str]) -> None:
    """The cases in one program; each is judged by its own outputs."""
    for made, answers in zip(found, run_host([Compiled(o) for o in found], inline=False, flags=flags), strict=True):
        assert not difference(node_cases()[made.name], answers, ROUNDING), made.name


def passed(every: int) -> list[Outcome]:
    return [o for o in outcomes(every).values() if o.kind is Kind.PASSED]


def batches(every: int) -> Iterator[list[Outcome]]:
    some = passed(every)
    for i in range(0, len(some), AT_ONCE):
        yield some[i : i + AT_ONCE]


def test_some_cases_compute_what_they_say() -> None:
    found = outcomes(QUICK)
    check(found)
    assert len(passed(QUICK)) > len(found) / 2


def test_some_cases_as_c() -> None:
    check_c(passed(QUICK)[::3], ("-O0",))


def test_the_page_is_right_about_these_cases() -> None:
    told = recorded(PAGE.read_text())
    for name, made in outcomes(QUICK).items():
        assert told[name] == (made.kind is Kind.PASSED, made.frozen), f"{name}: run tools/make_onnx_table.py"


def test_files_of_the_packages_are_equal_or_refused() -> None:
    found = outcomes_by_folder(large=False)
    bugs = [str(o) for some in found.values() for o in some if o.kind in (Kind.WRONG, Kind.CRASHED)]
    assert not bugs, "\n".join(bugs)
    text = PAGE.read_text()
    for line in file_section(found)[6 : 6 + len(found)]:
        assert line in text, "run tools/make_onnx_table.py"


@pytest.mark.slow
def test_all_cases_compute_what_they_say() -> None:
    check(outcomes(1))
    assert len(passed(1)) >= 900
    assert page(list(outcomes(1).values()), outcomes_by_folder()) == PAGE.read_text(), "run tools/make_onnx_table.py"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(30))
def test_all_cases_as_c(part: int) -> None:
    for some in list(batches(1))[part::30]:
        check_c(some, ("-O1", *SANITIZERS))

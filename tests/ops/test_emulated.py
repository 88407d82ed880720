"""The case table on emulated CPUs: every kernel variant that the CPU would use, equal to the reference.

`make test` runs the whole table on one CPU. On the others it leaves out what `portable C on the host` has already
shown: of the portable kernels it takes one case per operator. `make test-all` runs all of it everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeAlias

import pytest

from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.targets.features import ANY_CPU, XCV
from tests.ops.case import Case, Outputs, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated
from tests.ops.merge import merged

Image: TypeAlias = tuple[str, str]  # board, optimize
Answers: TypeAlias = Mapping[str, Outputs]

BOARDS = ["mps2-an385-v6m", "mps2-an386", "mps2-an505", "mps3-an547", "virt-rv32", "cluster8", "virt-hazard3"]
WHOLE = ("mps2-an386", "speed")
QUICK = {("mps2-an386", "size")} | {
    (b, "speed") for b in BOARDS[:-1]
}  # kernels out of line elsewhere in `make test-all`


@cache
def own(board: str) -> frozenset[str]:
    """The cases with kernels that not every CPU has, and one of each operator that has none such here."""
    cpu = load_board(board)
    plans = {c.name: make_plan(merged([c])[0], cpu) for c in TABLE}
    special = [c for c in TABLE if any(s.kernel.needs != ANY_CPU for s in plans[c.name].steps)]
    if board == "cluster8":  # what else it has, virt-rv32 has too; and three of each are enough until the long sweeps
        each = defaultdict[str, list[str]](list)
        for case in special:
            for step in plans[case.name].steps:
                if step.kernel.needs == XCV:
                    each[step.kernel.symbol].append(case.name)
        return frozenset(name for names in each.values() for name in names[:3])
    one_each = {type(c.op): c for c in [*reversed(TABLE), *special]}
    return frozenset(c.name for c in [*special, *one_each.values()])


def cells() -> Iterator[object]:
    """Images and their cases. An image is built by one worker (tests/conftest.py knows their names)."""
    for optimize in ("speed", "size"):
        for board in BOARDS:
            image = board, optimize
            for case in TABLE:
                quick = image == WHOLE or (image in QUICK and case.name in own(board))
                yield pytest.param(
                    image, case, marks=() if quick else pytest.mark.slow, id=f"{board}-{optimize}-{case.name}"
                )


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Image], Answers]:
    """What an image answers to those of its cases that this run asks for. It is built when the first is."""
    here = [
        i.callspec.params
        for i in request.session.items
        if isinstance(i, pytest.Function) and i.module is request.module
    ]

    @cache
    def of(image: Image) -> Answers:
        cases = [p["case"] for p in here if p["image"] == image]
        board, optimize = image
        outputs = run_emulated(cases, board, tmp_path_factory.mktemp(board), optimize)
        return {c.name: y for c, y in zip(cases, outputs, strict=True)}

    return of


@pytest.mark.parametrize("image, case", list(cells()))
def test_the_cpu_computes_the_reference(image: Image, case: Case, answers: Callable[[Image], Answers]) -> None:
    case.check(answers(image)[case.name], run_reference([case])[0])

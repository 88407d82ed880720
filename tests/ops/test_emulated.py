"""The case table on emulated CPUs: every kernel variant that the CPU would use, equal to the reference.

`make test` leaves out what `portable C on the host` has already shown: of the portable kernels it takes one case per
operator. `make test-all` runs the whole table everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import pytest

from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.move import Assembled, Choose
from baretorch.plan.select import select_kernel
from baretorch.targets.boards import load_board
from baretorch.targets.features import ANY_CPU, XCV
from baretorch.targets.types import Board
from tests.ops.case import Case, Outputs, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import run_emulated

Image: TypeAlias = tuple[str, str]  # board, optimize
Answers: TypeAlias = Mapping[str, Outputs]

BOARDS = ["mps2-an385-v6m", "mps2-an386", "mps2-an505", "mps3-an547", "virt-rv32", "cluster8", "virt-hazard3"]
QUICK = {("mps2-an386", "size")} | {
    (b, "speed") for b in BOARDS[:-1]
}  # kernels out of line elsewhere in `make test-all`
# What these have, others have too: three cases of each kernel.
THIN = {("mps2-an386", "size"), ("mps2-an505", "speed"), ("cluster8", "speed")}


def kernels(case: Case, board: Board) -> Iterator[Kernel[Any]]:
    """Those of the CPU, without a plan: the whole table is asked before the first test runs."""
    graph = case.graph()
    for node in graph.nodes:
        whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if node.op.view(whole.inputs) is None and not isinstance(node.op, Choose):
            for call in node.op.pieces(whole) if isinstance(node.op, Assembled) else (whole,):
                yield select_kernel(call, board.chip.cpu)


@cache
def own(image: Image) -> frozenset[str]:
    """The cases with kernels that not every CPU has, and one of each operator that has none such here."""
    name, _ = image
    board = load_board(name)
    special = defaultdict[str, list[Case]](list)
    for case in TABLE:
        for kernel in kernels(case, board):
            if kernel.needs == XCV if name == "cluster8" else kernel.needs != ANY_CPU:
                special[kernel.symbol].append(case)
    if image in THIN:
        return frozenset(c.name for cases in special.values() for c in cases[:3])
    whole = [c for cases in special.values() for c in cases]
    one_each = {type(c.op): c for c in [*reversed(TABLE), *whole]}
    return frozenset(c.name for c in [*whole, *one_each.values()])


def cells(slow: bool) -> Iterator[object]:
    """Return images and their cases. An image is built by one worker (tests/conftest.py knows their names)."""
    for optimize in ("speed", "size"):
        for board in BOARDS:
            image = board, optimize
            for case in TABLE:
                quick = image in QUICK and case.name in own(image)
                if quick or slow:
                    marks = () if quick else pytest.mark.slow
                    yield pytest.param(image, case, marks=marks, id=f"{board}-{optimize}-{case.name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leave out the slow cells where they do not run: making 16,000 of them takes seconds."""
    if "image" in metafunc.fixturenames:
        metafunc.parametrize("image, case", list(cells(slow=metafunc.config.option.markexpr != "not slow")))


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Image], Answers]:
    """Return the results of an image for those of its cases that this run selects. It is built when the first is
    needed."""
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


def test_the_cpu_computes_the_reference(image: Image, case: Case, answers: Callable[[Image], Answers]) -> None:
    case.check(answers(image)[case.name], run_reference([case])[0])

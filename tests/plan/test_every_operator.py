"""Every operator can be planned on the boards whose planners model its cost."""

from __future__ import annotations

import pytest

from baretorch.options import Options, Units
from baretorch.plan import make_plan
from baretorch.plan.schedule import Step
from baretorch.targets.boards import load_board
from baretorch.tune.workbench import step_key
from tests.ops.case import Case
from tests.ops.cases import TABLE

CLUSTERS = [("cluster8", Units.AUTO), ("cluster8", Units.OFF), ("cluster4-soc", Units.AUTO)]


def steps_of(case: Case, board: str, units: Units = Units.AUTO) -> tuple[Step, ...]:
    found = load_board(board)
    return make_plan(case.graph(), found, Options(cores=found.chip.core_count, units=units)).steps


def _rows() -> list[object]:
    """The kernels of the clusters are int8; the others share one rate."""
    own = [c for c in TABLE if c.op.name.startswith("q")]
    rest = [c for c in TABLE if c not in own]
    few = {c.op.name: c for c in rest}
    return [pytest.param([*own, *few.values()], id="some"), pytest.param(rest, id="rest", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("board", "units"), CLUSTERS)
@pytest.mark.parametrize("cases", _rows())
def test_clusters_can_plan(cases: list[Case], board: str, units: Units) -> None:
    assert len(cases) > 300
    for case in cases:
        steps_of(case, board, units)


def test_tune_has_a_key_for_every_step() -> None:
    """Also for tables, which are constants without rows."""
    keys = {step_key(step) for case in TABLE for step in steps_of(case, "mps2-an386")}
    assert len(keys) > 500

"""Delegates in a plan: where the NPU reaches everything, when it runs, and what the judge refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from baretorch.emit import emit
from baretorch.errors import CompileError, InternalError
from baretorch.npu.partition import make_partition
from baretorch.ops.helpers import executor
from baretorch.options import Buffers, Options
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.schedule import Phase, Schedule
from baretorch.plan.types import InArena, InRam, Plan
from baretorch.targets.boards import load_board
from tests.npu.stand_in import NPU, StandIn
from tests.npu.test_partition import Net

BOARD = load_board("corstone-300")


def planned(options: Options | None = None) -> Plan:
    """table, softmax, sum: NPU, CPU, NPU."""
    g = Net("net")
    x = g.image("x")
    a = g.table(x)
    graph = g.graph((x,), (g.sum(g.log_softmax(a), a),))
    found = make_partition(graph, NPU, StandIn())
    return make_plan(found.graph, BOARD, options or Options())


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned()


def test_everything_is_where_the_npu_reaches_it(plan: Plan) -> None:
    npu = [step for step in plan.steps if step.executor == executor.NPU]
    assert plan.steps[0] is npu[0] and plan.steps[-1] is npu[1] and len(npu) == 2
    for step in npu:
        assert step.scratch is not None and step.scratch.size == 100
        places = [plan.layout.place(o) for o in step.operands]
        for place in (*places, plan.layout.scratch(step.scratch)):
            assert place.bank == "SRAM" if isinstance(place, InArena | InRam) else False
            assert not isinstance(place, InArena) or place.offset % 16 == 0
        assert all(plan.layout.constant(o.storage).align == 16 for o in step.operands if o.constant)
    assert plan.layout.copied("SRAM") == 2 * (64 + 48)
    assert plan.layout.banks[0].name == "SRAM"


def test_one_waits_for_the_other(plan: Plan) -> None:
    before = [None, *(phase.steps[0].executor for phase in plan.phases)]
    for phase, last in zip(plan.phases[1:], before[1:], strict=False):
        assert phase.meet == (phase.steps[0].executor != last)


def test_the_core_starts_what_the_npu_does(plan: Plan) -> None:
    c = emit("net", {"forward": plan})
    assert c.files["model.c"].count("    delegate_") == 2
    assert "kernels/delegate/npu.inc" in c.files
    assert "__attribute__((aligned(16)))" in c.files["model.c"]
    assert c.files["weights.c"].count("BT_WEIGHTS_IN(SRAM, ") == c.files["weights.c"].count("aligned(16)") > 1
    assert "meet" not in c.files["model.c"]
    assert "aligned to 16 where the NPU reaches it. Not reentrant" in " ".join(
        c.files["model.h"].replace("\n *", " ").split()
    )


def test_buffers_of_the_caller_are_copied_for_the_npu() -> None:
    """Who knows where they are: x is the NPU's, the answer too."""
    assert planned(Options(buffers=Buffers.CALLER)).layout.lent == frozenset()


def test_a_layer_cannot_be_where_the_npu_is_not() -> None:
    with pytest.raises(CompileError) as error:
        planned(Options(place={"x": "DTCM"}))
    assert error.value.render() == (
        "error: --place: the NPU cannot access DTCM\n"
        "  at    x\n"
        "  need  SRAM for its inputs and outputs\n"
        "  try   leave it out, or --npu off"
    )


def _elsewhere(plan: Plan) -> Plan:
    x, *others = plan.layout.buffers
    banks = (*plan.layout.banks, replace(plan.layout.banks[0], name="DTCM"))
    return replace(plan, layout=replace(plan.layout, buffers=(replace(x, bank="DTCM"), *others), banks=banks))


def _unaligned(plan: Plan) -> Plan:
    layout = plan.layout
    loose = tuple(replace(b, align=4) for b in layout.buffers)
    banks = (replace(layout.banks[0], size=layout.banks[0].size + 4), *layout.banks[1:])
    shifted = tuple(replace(b, offset=b.offset + 4) for b in loose)
    return replace(plan, layout=replace(layout, buffers=shifted, banks=banks))


def _phases(plan: Plan, change: Callable[[Phase], Phase]) -> Plan:
    return replace(plan, schedule=Schedule(tuple(map(change, plan.phases)), plan.schedule.executors))


def _on_core0(plan: Plan) -> Plan:
    return _phases(plan, lambda p: replace(p, steps=tuple(replace(s, executor=executor.CORE0) for s in p.steps)))


def _less_scratch(plan: Plan) -> Plan:
    def less(phase: Phase) -> Phase:
        steps = (replace(s, scratch=replace(s.scratch, size=96)) if s.scratch else s for s in phase.steps)
        return replace(phase, steps=tuple(steps))

    return _phases(plan, less)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_elsewhere, "the NPU does not reach"),
        (_unaligned, "the NPU does not reach"),
        (_on_core0, "delegate runs on core0"),
        (_less_scratch, "less scratch"),
        (lambda plan: _phases(plan, lambda p: replace(p, meet=False)), "nothing orders them"),
    ],
)
def test_the_judge_refuses(damage: Callable[[Plan], Plan], words: str, plan: Plan) -> None:
    with pytest.raises(InternalError, match=words):
        check_plan(damage(plan))

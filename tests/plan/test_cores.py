"""Two cores: plans that are right however the cores take turns, and a judge that sees it if they are not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baretorch.errors import CompileError, InternalError
from baretorch.frontends import from_module
from baretorch.ir.graph import Graph, interpret
from baretorch.ops.helpers.executor import CORE0, Executor
from baretorch.options import Options
from baretorch.passes.order import lower_graph
from baretorch.pipeline import compile_source
from baretorch.plan import make_plan, shares
from baretorch.plan.check.plan import check_plan
from baretorch.plan.schedule import Schedule, Step
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from tests.models import cnn, cnn_input
from tests.plan.test_banks import smaller
from tests.plan.test_plan import graphs, simulate

PICO2W = load_board("pico2w")
BOTH = Options(cores=2)
TEAM = shares.CorePair(2, shares.LEAST)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the smallest layer is worth a meeting."""
    monkeypatch.setattr(shares, "LEAST", 1)


def cnn_graph() -> Graph:
    source = from_module(cnn(), (cnn_input(),), "cnn")
    return lower_graph(source.graphs[source.method])


def interleaved(schedule: Schedule, seed: int) -> Iterator[Step]:
    """The steps in an order in which two cores might run them: at random between meetings."""
    lot = random.Random(seed)
    waiting = {e: list(schedule.on(e)) for e in schedule.executors}
    while any(waiting.values()):
        free = [e for e, steps in waiting.items() if steps and steps[0] is not None]
        if not free:
            for steps in waiting.values():
                assert steps and steps.pop(0) is None, "one waits for a meeting that the other never comes to"
            continue
        step = waiting[lot.choice(free)].pop(0)
        assert step is not None
        yield step


@pytest.mark.usefixtures("eager")
@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 3))
def test_the_answer_is_right_however_they_take_turns(graph: Graph, seed: int) -> None:
    plan = make_plan(lower_graph(graph), PICO2W, BOTH)
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal(graph[n].shape).astype(np.float32) for n in graph.inputs]
    want = interpret(graph, inputs)
    have = simulate(plan, inputs, order=interleaved(plan.schedule, seed))
    for name, value in zip(graph.outputs, have, strict=True):
        np.testing.assert_allclose(value, want[name], rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(8))
def test_a_network_is_right_however_they_take_turns(seed: int) -> None:
    graph = cnn_graph()
    plan = make_plan(graph, PICO2W, BOTH)
    assert {step.executor for step in plan.steps} == {CORE0, Executor("core", 1)}
    inputs = [np.random.default_rng(seed).standard_normal(graph[n].shape).astype(np.float32) for n in graph.inputs]
    want = interpret(graph, inputs)
    have = simulate(plan, inputs, order=interleaved(plan.schedule, seed))
    np.testing.assert_allclose(have[0], want[graph.outputs[0]], rtol=1e-4, atol=1e-5)


def without(plan: Plan, phase: int) -> Plan:
    phases = tuple(replace(p, meet=p.meet and i != phase) for i, p in enumerate(plan.phases))
    return replace(plan, schedule=replace(plan.schedule, phases=phases))


@pytest.mark.usefixtures("eager")
def test_the_judge_misses_no_meeting() -> None:
    plan = make_plan(cnn_graph(), PICO2W, BOTH)
    meetings = [i for i, phase in enumerate(plan.phases) if phase.meet]
    assert len(meetings) >= 2
    for phase in meetings:
        with pytest.raises(InternalError, match=r"touch the same bytes of .* and nothing orders them"):
            check_plan(without(plan, phase))


@pytest.mark.usefixtures("eager")
def test_the_judge_wants_one_step_of_a_core_at_a_time() -> None:
    plan = make_plan(cnn_graph(), PICO2W, BOTH)
    both = next(phase for phase in plan.phases if len(phase.steps) == 2)
    alone = replace(both, steps=tuple(replace(step, executor=CORE0) for step in both.steps))
    others = (step for phase in plan.phases for step in phase.steps if phase is not both)
    assert any(step.executor == Executor("core", 1) for step in others), "else there is nothing to judge"
    phases = tuple(alone if phase is both else phase for phase in plan.phases)
    with pytest.raises(InternalError, match="two steps at the same time"):
        check_plan(replace(plan, schedule=replace(plan.schedule, phases=phases)))


def test_small_layers_stay_on_one_core() -> None:
    plan = make_plan(cnn_graph(), PICO2W, BOTH)
    for phase in plan.phases:
        assert len(phase.steps) == 1 or sum(TEAM.work(s.call, s.kernel) for s in phase.steps) >= shares.LEAST


@pytest.mark.usefixtures("eager")
def test_what_two_cores_have_no_room_for_may_fit_one() -> None:
    graph = cnn_graph()
    assert make_plan(graph, PICO2W).arena < make_plan(graph, PICO2W, BOTH).arena
    hint = "\n  try   leave out --cores: a layer that two cores share cannot have its output where its input dies"
    with pytest.raises(CompileError) as ram:
        make_plan(graph, PICO2W, replace(BOTH, ram=100))
    assert ram.value.render().endswith(f"\n  need  at most 100 bytes, the limit of --ram{hint}")
    with pytest.raises(CompileError) as room:
        make_plan(graph, smaller(smaller(PICO2W, "SRAM", 4096 + 100), "SCRATCH", 100), BOTH)
    assert room.value.render().endswith(
        f"\n  need  at most 100 bytes of SRAM, in addition to 8,192 for the stack{hint}"
    )


ERRORS = {
    ("host", 2, 0): "error: --cores 2: host has 1 core\n"
    "  need  a chip whose TOML describes 2 cores, as those of pico and pico2w do\n"
    "  try   leave it out",
    ("mps2-an386", 1, 1): "error: --core 1: mps2-an386 has 1 core\n"
    "  need  a chip whose TOML describes 2 cores, as those of pico and pico2w do\n"
    "  try   leave it out",
    ("pico", 3, 0): "error: --cores 3: pico has 2 cores\n  try   --cores 2, or --core 1",
    ("pico", 2, 1): "error: --cores and --core do not go together\n"
    "  need  --cores 2 to share the work, or --core 1 to leave core 0 to the application",
}


@pytest.mark.parametrize(("board", "count", "core"), ERRORS)
def test_what_a_board_does_not_have(board: str, count: int, core: int) -> None:
    source = from_module(cnn(), (cnn_input(),), "cnn")
    with pytest.raises(CompileError) as caught:
        compile_source(source, load_board(board), Options(cores=count, core=core))
    assert caught.value.render() == ERRORS[board, count, core]

"""The guards of tests/guarded see what they are there for: each of these plans is wrong, and its C compiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ops.elementwise import Add, Clamp
from baretorch.ops.functions import Tanh
from baretorch.ops.move import Slice
from baretorch.options import Buffers, Options
from baretorch.plan import make_plan, shares
from baretorch.plan.schedule import one_by_one
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from baretorch.targets.parts import CoreGroup
from tests.guarded import Fault, Guarded, run_guarded

HOST = load_board("host")
LENT = Options(buffers=Buffers.CALLER)
ROWS, GIVEN = 4, np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def graph(*outputs: str) -> Graph:
    b = Builder("m")
    x = b.input("x", (ROWS, 4), DType.FLOAT32)
    y = b.add(Clamp(0.0, 0.5), b.add(Tanh(), x, name="a"), name="y")
    b.add(Slice(0, 3, 4), y, name="last")
    return b.graph([x], outputs)


def answers(plan: Plan, folder: Path, pointers: bool = True) -> list[tuple[np.ndarray, ...]]:
    return run_guarded([Guarded("m", {"forward": plan}, [("forward", [GIVEN])] * 2, pointers)], folder)["m"]


@pytest.mark.parametrize("options", [Options(), LENT], ids=["arena", "caller"])
@pytest.mark.parametrize("pointers", [True, False])
def test_a_right_plan_runs(options: Options, pointers: bool, tmp_path: Path) -> None:
    for y, last in answers(make_plan(graph("y", "last"), HOST, options), tmp_path, pointers):
        np.testing.assert_allclose(y, np.clip(np.tanh(GIVEN), 0, 0.5), atol=1e-6)
        assert np.array_equal(last, y[3:])


def small_arena(plan: Plan) -> Plan:
    (bank,) = plan.layout.banks
    return replace(plan, layout=replace(plan.layout, banks=(replace(bank, size=bank.size - 8),)))


def small_output(plan: Plan) -> Plan:
    """Let only the last row of the caller's buffer y be an output."""
    kept = tuple(b for b in plan.layout.buffers if b.name != "y")
    return replace(plan, layout=replace(plan.layout, lent=frozenset({"x", "y"}), buffers=kept))


def before_output(plan: Plan) -> Plan:
    *rest, last = plan.steps
    *reads, y = last.operands
    wrong = replace(last, operands=(*reads, replace(y, offset=-4)))
    return replace(plan, schedule=one_by_one([*rest, wrong]))


@pytest.mark.parametrize(
    ("outputs", "options", "change", "error"),
    [
        (("y",), Options(), small_arena, "AddressSanitizer: use-after-poison"),
        (("last",), Options(buffers=Buffers.CALLER), small_output, "AddressSanitizer: use-after-poison"),
        (("y",), LENT, before_output, "byte -4 of y, which has 64, was written"),
    ],
    ids=["arena", "beyond an output", "before an output"],
)
def test_a_guard_is_touched(
    outputs: tuple[str, ...], options: Options, change: Callable[[Plan], Plan], error: str, tmp_path: Path
) -> None:
    with pytest.raises(Fault, match=error):
        answers(change(make_plan(graph(*outputs), HOST, options)), tmp_path)


def test_an_output_that_is_not_written_shows_the_pattern(tmp_path: Path) -> None:
    """The only step has half as many elements as the output."""
    plan = make_plan(graph("a"), HOST, LENT)
    step = plan.steps[0]
    halves = tuple((name, value // 2) for name, value in step.params.fields)
    half = replace(step, params=replace(step.params, fields=halves))
    for (y,) in answers(replace(plan, schedule=one_by_one([half])), tmp_path):
        assert y.tobytes()[32:] == b"\xc3" * 32
        np.testing.assert_allclose(y.reshape(-1)[:8], np.tanh(GIVEN).reshape(-1)[:8], atol=1e-6)


def test_state_stays_and_the_rest_of_the_arena_does_not(tmp_path: Path) -> None:
    b = Builder("m")
    x, s = (b.input(name, (4, 4), DType.FLOAT32) for name in ("x", "s"))
    y = b.add(Add(), x, s, name="y")
    plan = make_plan(b.graph([x], [y], [State(s, y, np.ones((4, 4), np.float32))]), HOST, LENT)
    first, second = answers(plan, tmp_path)
    assert np.array_equal(first[0], GIVEN + 1) and np.array_equal(second[0], GIVEN + first[0])


def test_two_cores_are_two_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shares, "LEAST", 1)
    board = replace(HOST, chip=replace(HOST.chip, cores=CoreGroup(2, "", 0)))
    plan = make_plan(graph("y", "last"), board, replace(LENT, cores=2))
    assert len(plan.schedule.cores) == 2
    for y, last in answers(plan, tmp_path):
        np.testing.assert_allclose(y, np.clip(np.tanh(GIVEN), 0, 0.5), atol=1e-6)
        assert np.array_equal(last, y[3:])

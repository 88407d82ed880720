"""Memory that the caller lends: every output is written in full in its own buffer, and the judge rejects all else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from baretorch.errors import InternalError
from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ops.elementwise import Clamp
from baretorch.ops.functions import Tanh
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Cat, Slice
from baretorch.options import Buffers, Options
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.schedule import BackgroundCopy, Operand, Phase, Schedule, Step, one_by_one
from baretorch.plan.types import Plan, StateBuffer, WithCaller
from baretorch.targets.boards import load_board

HOST = load_board("host")
LENT = Options(buffers=Buffers.CALLER)


def chain() -> Graph:
    """Return two layers: x -> a -> y."""
    b = Builder("chain")
    a = b.add(Clamp(0.0, 1.0), b.input("x", (2, 4), DType.FLOAT32), name="a")
    return b.graph(["x"], [b.add(Tanh(), a, name="y")])


def part() -> Graph:
    """Return a layer whose output and its last row are both outputs."""
    b = Builder("part")
    y = b.add(Tanh(), b.input("x", (4, 4), DType.FLOAT32), name="y")
    return b.graph(["x"], [y, b.add(Slice(0, 3, 4), y, name="last")])


def joined() -> Graph:
    """Return a cat of two inputs, which takes one step each."""
    b = Builder("joined")
    parts = [b.input(name, (1, 4), DType.FLOAT32) for name in ("p", "q")]
    return b.graph(parts, [b.add(Cat(1), *parts, name="y")])


def remembering() -> Graph:
    b = Builder("remembering")
    x, s = (b.input(name, (4,), DType.FLOAT32) for name in ("x", "s"))
    return b.graph([x], [b.add(Tanh(), s, name="y")], [State(s, b.add(Tanh(), x), np.zeros(4, np.float32))])


def lent_to(graph: Graph) -> dict[str, bool]:
    """Return for each port whether it stays in the caller's buffer."""
    plan = make_plan(graph, HOST, LENT)
    ports = (*plan.inputs, *plan.outputs)
    return {o.tensor: isinstance(plan.layout.place(o), WithCaller) for o in ports}


def test_a_buffer_with_two_outputs_is_not_lent() -> None:
    assert lent_to(part()) == {"x": True, "y": False, "last": False}


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0), (0, 1, 2)])
def test_outputs_that_are_each_other_are_copied(order: tuple[int, ...]) -> None:
    """An output, a reshape of it and a part of it, in any order and twice."""
    b = Builder("same")
    y = b.add(Tanh(), b.input("x", (4, 4), DType.FLOAT32))
    views = (y, b.add(Reshape((16,)), y), b.add(Slice(0, 1, 3), y))
    found = lent_to(b.graph(["x"], [views[i] for i in order]))
    assert found == {"x": True, **{views[i]: False for i in order}}


def test_the_only_view_of_a_buffer_is_lent() -> None:
    b = Builder("view")
    y = b.add(Tanh(), b.input("x", (4, 4), DType.FLOAT32))
    z = b.add(Reshape((16,)), y)
    assert lent_to(b.graph(["x"], [z])) == {"x": True, z: True}


@pytest.mark.parametrize("which", ["x", "part of x"])
def test_an_input_that_is_an_output_is_copied(which: str) -> None:
    b = Builder("given")
    x = b.input("x", (4, 4), DType.FLOAT32)
    y = b.add(Tanh(), x)
    back = x if which == "x" else b.add(Slice(0, 1, 2), x)
    assert lent_to(b.graph([x], [y, back])) == {x: False, y: True, back: False}


def test_a_cat_in_place_and_what_it_is_made_of() -> None:
    """Both inputs are made where the cat has them, so none of the three outputs has a buffer of its own."""
    b = Builder("cat")
    x = b.input("x", (1, 4), DType.FLOAT32)
    p, q = b.add(Tanh(), x), b.add(Clamp(0.0, 1.0), x)
    y = b.add(Cat(0), p, q)
    assert lent_to(b.graph([x], [q, y, p])) == {x: True, q: False, y: False, p: False}
    assert lent_to(b.graph([x], [y])) == {x: True, y: True}


def test_a_part_of_a_constant_is_read_where_it_is() -> None:
    b = Builder("constant")
    x = b.input("x", (4,), DType.FLOAT32)
    rows = b.add(Slice(0, 2, 4), b.const("c", np.arange(16, dtype=np.float32).reshape(4, 4)))
    plan = make_plan(b.graph([x], [b.add(Tanh(), x), rows]), HOST, LENT)
    assert (plan.outputs[1].constant, plan.outputs[1].offset, plan.outputs[1].size) == (True, 32, 32)


# Each of these makes a plan wrong.


def layout(plan: Plan, **changes: object) -> Plan:
    return replace(plan, layout=replace(plan.layout, **changes))


def without_buffer(plan: Plan, name: str) -> Plan:
    return layout(plan, buffers=tuple(b for b in plan.layout.buffers if b.name != name))


def lending(plan: Plan, name: str) -> Plan:
    return without_buffer(layout(plan, lent=plan.layout.lent | {name}), name)


def living(plan: Plan, name: str, **when: int) -> Plan:
    return layout(plan, buffers=tuple(replace(b, **when) if b.name == name else b for b in plan.layout.buffers))


def stepping(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    steps = [changed for step in plan.steps if (changed := change(step)) is not None]
    return replace(plan, schedule=one_by_one(steps))


def writing(step: Step, **changes: object) -> Step:
    return replace(step, operands=(*step.operands[:-1], replace(step.operands[-1], **changes)))


def last_step(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    return stepping(plan, lambda step: change(step) if step is plan.steps[-1] else step)


def copying(plan: Plan, source: Operand, target: Operand) -> Plan:
    first, *rest = plan.phases
    phases = (Phase(first.steps, copies=(BackgroundCopy("a copy", source, target),)), *rest)
    return replace(plan, schedule=Schedule(phases))


def read_of(plan: Plan) -> Operand:
    return plan.steps[0].reads[0]


WRONG: list[tuple[str, Callable[[], Graph], Callable[[Plan], Plan], str]] = [
    ("two outputs own a buffer", part, lambda p: lending(p, "y"), "2 ports own y"),
    ("an output and an input own a buffer", chain, lambda p: replace(p, outputs=(
        replace(p.outputs[0], storage="x"),)), "2 ports own x|0 ports own y"),
    ("no port owns a buffer", chain, lambda p: lending(p, "a"), "0 ports own a"),
    ("a port is with the caller and in the arena", chain, lambda p: layout(p, buffers=(
        *p.layout.buffers, replace(p.layout.buffers[0], name="y"))), "y is not in one place"),
    ("a port is nowhere", chain, lambda p: layout(p, lent=frozenset("x")), "y is not in one place"),
    ("an output is a stream", chain, lambda p: layout(p, lent=frozenset("x"), streamed=frozenset("y")),
        "y is not an input that comes in rows"),
    ("a port is smaller than its tensor", chain, lambda p: replace(p, outputs=(replace(p.outputs[0], size=28),)),
        "port y has 28 bytes"),
    ("a port is larger than its tensor", chain, lambda p: replace(p, inputs=(replace(p.inputs[0], size=36),)),
        "port x has 36 bytes"),
    ("an output is beyond its buffer", part, lambda p: replace(p, outputs=(
        p.outputs[0], replace(p.outputs[1], offset=52))), "last is not in one place that is large enough"),
    ("an output is not the start of a lent buffer", chain, lambda p: replace(p, outputs=(
        replace(p.outputs[0], offset=4),)), "y is only a part of y"),
    ("ports are in the wrong order", part, lambda p: replace(p, outputs=p.outputs[::-1]), "the plan has ports for"),
    ("an output has no port", part, lambda p: replace(p, outputs=p.outputs[:1]), "the plan has ports for"),
    ("a step writes beyond the caller's buffer", chain, lambda p: last_step(p, lambda s: writing(s, offset=4)),
        "touches bytes 4..36 of y"),
    ("a step writes before the caller's buffer", chain, lambda p: last_step(p, lambda s: writing(s, offset=-4)),
        "touches bytes -4..28 of y"),
    ("a step reads beyond the caller's buffer", chain, lambda p: stepping(p, lambda s: s if s is not p.steps[0] else
        replace(s, operands=(replace(s.operands[0], size=64), *s.operands[1:]))), "touches bytes 0..64 of x"),
    ("a copy goes beyond the caller's buffer", chain, lambda p: copying(p, read_of(p), replace(
        p.outputs[0], size=64)), "a copy touches bytes 0..64 of y"),
    ("a step writes an input", chain, lambda p: last_step(p, lambda s: writing(s, storage="x")),
        "writes to the caller's input x"),
    ("a copy writes an input", chain, lambda p: copying(p, p.outputs[0], read_of(p)), "writes to the caller's input x"),
    ("no step writes an output", chain, lambda p: last_step(p, lambda s: None), "no step writes 32 of the 32 bytes"),
    ("a step writes half of an output", chain, lambda p: last_step(p, lambda s: writing(s, size=16)),
        "no step writes 16 of the 32 bytes"),
    ("a part of a cat is missing", joined, lambda p: last_step(p, lambda s: None), "no step writes 16 of the 32 bytes"),
    ("an output is made in a buffer and not copied home", chain, lambda p: last_step(
        p, lambda s: writing(s, buffer="a")), "no step writes 32 of the 32 bytes"),
    ("an output dies before the end", part, lambda p: living(p, "y", last=0), "y is not there after the run"),
    ("state dies before the end", remembering, lambda p: living(p, "s", last=0), "s is not there after the run"),
    ("state is born during the run", remembering, lambda p: living(p, "s", first=0), "s is not there before the run"),
    ("the caller lends state", chain, lambda p: replace(p, state=(StateBuffer(p.outputs[0], None),)),
        "the caller lends y, which is state"),
]  # fmt: skip


@pytest.mark.parametrize("graph, change, error", [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_the_judge_rejects(graph: Callable[[], Graph], change: Callable[[Plan], Plan], error: str) -> None:
    plan = make_plan(graph(), HOST, LENT)
    check_plan(plan)
    with pytest.raises(InternalError, match=error):
        check_plan(change(plan))


def test_the_judge_rejects_an_input_of_the_arena_that_comes_too_late() -> None:
    plan = make_plan(chain(), HOST)
    with pytest.raises(InternalError, match="x is not there before the run"):
        check_plan(living(plan, "x", first=0))

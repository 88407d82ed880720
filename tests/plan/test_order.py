"""The order of steps against all orders there are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from baretorch.ir.graph import Builder, DType, Graph, State, interpret
from baretorch.ops.elementwise import Add
from baretorch.ops.functions import Tanh
from baretorch.ops.linear import Linear
from baretorch.ops.move import Slice
from baretorch.plan import make_plan
from baretorch.plan.constants import Constants
from baretorch.plan.memory.lifetimes import find_lifetimes, find_overlaps
from baretorch.plan.memory.offsets import lower_bound
from baretorch.plan.memory.order import least_memory_order
from baretorch.plan.memory.storage import assign_storage
from baretorch.plan.schedule import Step, one_by_one
from baretorch.plan.select import make_steps
from baretorch.targets.boards import load_board
from tests.plan.test_plan import simulate

HOST = load_board("host")


def linear(b: Builder, x: str, out: int) -> str:
    weight = np.full((out, b.tensors[x].shape[-1]), 0.01, np.float32)
    return b.add(Linear(), x, b.const("w", weight))


def branching(seed: int, nodes: int) -> Graph:
    """A random DAG of layers that grow and shrink."""
    lot = random.Random(seed)
    b = Builder("branching")
    x = b.input("x", (1, lot.randint(1, 40)), DType.FLOAT32)
    made = [x]
    for _ in range(nodes):
        a = lot.choice(made[-4:])
        same = [t for t in made if b.tensors[t].shape == b.tensors[a].shape and t != a]
        if same and lot.random() < 0.5:
            made.append(b.add(Add(), a, lot.choice(same)))
        else:
            made.append(linear(b, a, lot.choice([1, 8, 40, 40, 100])))
    read = {n for node in b.nodes for n in node.inputs}
    return b.graph([x], [t for t in made if t not in read])


def peak(graph: Graph, steps: Sequence[Step]) -> int:
    schedule = one_by_one(steps)
    buffers = find_lifetimes(graph, schedule, assign_storage(graph))
    return lower_bound(buffers, find_overlaps(schedule, buffers))


def all_orders(steps: Sequence[Step], done: tuple[int, ...] = ()) -> Iterator[list[Step]]:
    """Every order in which a tensor is made before it is read."""
    if len(done) == len(steps):
        yield [steps[i] for i in done]
    made = {steps[i].call.y.name for i in done}
    makes = {s.call.y.name for s in steps}
    for i, step in enumerate(steps):
        if i not in done and all(t.name in made or t.name not in makes for t in step.call.inputs):
            yield from all_orders(steps, (*done, i))


@pytest.mark.parametrize("seed", range(60))
def test_no_order_needs_less(seed: int) -> None:
    graph = branching(seed, 6)
    steps = make_steps(graph, HOST.chip.cpu, assign_storage(graph), Constants())
    best = least_memory_order(steps, find_lifetimes(graph, one_by_one(steps), assign_storage(graph)))
    assert sorted(map(id, best)) == sorted(map(id, steps))
    assert peak(graph, best) == min(peak(graph, order) for order in all_orders(steps))


def test_branches_are_finished_one_after_the_other() -> None:
    """Two wide branches, each made narrow in the end: as written both are wide at once."""
    b = Builder("wide")
    x = b.input("x", (1, 10), DType.FLOAT32)
    wide = [linear(b, x, 1000), linear(b, x, 1000)]
    narrow = [linear(b, w, 10) for w in wide]
    graph = b.graph([x], [b.add(Add(), *narrow)])
    plan = make_plan(graph, HOST)
    assert plan.arena == plan.layout.lower_bound == 4 * (10 + 1000 + 10)
    assert [s.call.y.name for s in plan.steps] == [wide[0], narrow[0], wide[1], narrow[1], graph.outputs[0]]
    x_value = np.ones((1, 10), np.float32)
    np.testing.assert_allclose(simulate(plan, [x_value])[0], interpret(graph, [x_value])[graph.outputs[0]], rtol=1e-5)


def test_an_order_that_costs_nothing_is_kept() -> None:
    b = Builder("kept")
    x = b.input("x", (1, 10), DType.FLOAT32)
    made = [b.add(Tanh(), x) for _ in range(5)]
    graph = b.graph([x], made)
    assert [s.call.y.name for s in make_plan(graph, HOST).steps] == made


def test_state_is_read_before_it_takes_its_next_value() -> None:
    """The step that reads the old value stays before the one that overwrites it, whatever it costs."""
    b = Builder("remembers")
    x = b.input("x", (1, 100), DType.FLOAT32)
    s = b.input("s", (1, 100), DType.FLOAT32)
    following = b.add(Tanh(), x)
    wide = linear(b, s, 500)
    graph = b.graph([x], [linear(b, wide, 2)], [State("s", following, np.zeros((1, 100), np.float32))])
    steps = make_plan(graph, HOST).steps
    reads = next(i for i, step in enumerate(steps) if step.call.inputs[0].name == "s")
    update = next(i for i, step in enumerate(steps) if step.call.y.name == "s")
    assert reads < update


@pytest.mark.parametrize("seed", range(10))
def test_large_graphs_stay_right(seed: int) -> None:
    graph = branching(1000 + seed, 80)
    value = np.linspace(-1, 1, graph["x"].count, dtype=np.float32).reshape(graph["x"].shape)
    plan = make_plan(graph, HOST)
    want = interpret(graph, [value])
    for name, have in zip(graph.outputs, simulate(plan, [value]), strict=True):
        np.testing.assert_allclose(have, want[name], rtol=1e-4, atol=1e-5)


def test_parts_of_a_tensor_wait_for_each_other() -> None:
    """Slices are views: steps that read them come after the step that made the whole."""
    b = Builder("parts")
    x = b.input("x", (4, 10), DType.FLOAT32)
    whole = b.add(Tanh(), x)
    parts = [b.add(Slice(0, i, i + 2), whole) for i in (0, 2)]
    graph = b.graph([x], [linear(b, p, 100) for p in parts])
    plan = make_plan(graph, HOST)
    value = np.linspace(-1, 1, 40, dtype=np.float32).reshape(4, 10)
    want = interpret(graph, [value])
    for name, have in zip(graph.outputs, simulate(plan, [value]), strict=True):
        np.testing.assert_allclose(have, want[name], rtol=1e-5)

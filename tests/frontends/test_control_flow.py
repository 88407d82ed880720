"""torch.cond, while_loop, map and scan as PyTorch's users write them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn
from torch._higher_order_ops import scan
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.while_loop import while_loop

import baretorch
from baretorch.errors import CompileError, InternalError
from baretorch.frontends import from_module
from baretorch.frontends.torch.control_flow import CHOOSE
from baretorch.frontends.torch.plain import make_plain
from baretorch.ir.graph import Builder, DType
from baretorch.ops.functions import Cos, Sin, Tanh
from baretorch.ops.logic import Lt
from baretorch.ops.move import Cat, Choose
from baretorch.ops.reduce import Sum
from baretorch.passes.order import lower_graph
from baretorch.pipeline import compile_source
from baretorch.plan import make_plan
from baretorch.plan.check.guards import check_guards
from baretorch.plan.guards import find_guards
from baretorch.plan.schedule import one_by_one
from baretorch.targets.boards import load_board


def _all(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


X = torch.linspace(-1, 2, 8).reshape(2, 4)


class Branches(nn.Module):
    """An expensive branch and a cheap one, after a convolution and before a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.costly = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))
        self.cheap = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 3)
        generator = torch.Generator().manual_seed(0)
        for p in self.parameters():
            p.data = torch.rand(p.shape, generator=generator) - 0.4

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x).relu()
        chosen = torch.cond(x.mean() > 0, lambda h: self.costly(h), lambda h: self.cheap(h), (h,))
        return self.head(chosen.mean((2, 3)))


IMAGE = torch.linspace(-9, 9, 128).sin().reshape(1, 2, 8, 8)
SIDES = (IMAGE + 0.5, IMAGE - 0.5)  # takes the costly branch, and the cheap one


class Halving(nn.Module):
    """A loop that data ends, or after five turns a counter."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        turns, y = while_loop(
            lambda i, y: (i < 5) & (y.norm() > 1), lambda i, y: (i + 1, y * 0.5 + 0.01), (torch.tensor(0), x)
        )
        return turns, y


def nested(x: Tensor) -> Tensor:
    def inner(y: Tensor) -> Any:
        return torch.cond(y[0, 0] > 1, lambda y: y + 1, lambda y: y.cos(), (y,))

    result: Tensor = torch.cond(x.sum() > 0, lambda y: inner(y * 2), lambda y: y.sin(), (x,))
    return result


def two_results(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x.sin(), x.mean()), (x,))


def counted(x: Tensor) -> Any:
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2 + i), (torch.tensor(0), x))


def running(x: Tensor) -> Any:
    return scan(lambda carry, row: (carry + row, carry * 2), torch.zeros(4), x.clone(), dim=0)


def by_rows(x: Tensor) -> Any:
    return mapped(lambda row, other: row * other.sum(), x.clone(), torch.arange(4.0))


def only_returned(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x.clone(), (x,))


WRITTEN: dict[str, Callable[..., Any] | nn.Module] = {
    "two results": two_results,
    "nested": nested,
    "an input as it is": only_returned,
    "a loop that data ends": Halving(),
    "a loop of known length": counted,
    "scan": running,
    "map": by_rows,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    """Every pass and the C on the host, for inputs that go different ways."""
    written = WRITTEN[name]
    module = written if isinstance(written, nn.Module) else Function(written)
    check_module(module, X)
    with closing(baretorch.compile(module, (X,), board="host")) as model:
        for x in (X, -X, 0.6 + 0 * X):
            want = torch.utils._pytree.tree_leaves(module(x))
            for got, need in zip(_all(model.run(x)), want, strict=True):
                np.testing.assert_allclose(got, need.numpy(), rtol=1e-5, atol=1e-6)


class Masked(nn.Module):
    """Conditions of constants and data, of several numbers each."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("some", torch.tensor([True, False, True, False]))
        self.register_buffer("none", torch.tensor(False))
        self.some: Tensor
        self.none: Tensor

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.cond(
            (self.some & (x > x.max(1, keepdim=True)[0] - 0.5)).any(), lambda x: x + 1, lambda x: x * 2, (x,)
        )
        always = (~(self.none & (x > 0))).sum() > 7  # known: all eight are true
        return torch.cond(always, lambda y: y + 3, lambda y: y.sin(), (y,))


def test_conditions_of_several_numbers() -> None:
    graph = check_module(Masked(), X)
    assert names(graph).count("choose") == 1 and "sin" not in names(graph)


def test_a_loop_that_remembers_whether_to_go_on() -> None:
    """Each turn's condition depends on all those before, which must not take 2^40 steps."""

    def alive(x: Tensor) -> Any:
        return while_loop(
            lambda i, go, y: (i < 40) & go,
            lambda i, go, y: (i + 1, go & (y.sum() > 1), y * 0.9),
            (torch.tensor(0), torch.tensor(True), x),
        )

    exported = torch.export.export(Function(alive), (X,))
    plain = make_plain(exported)
    assert sum(node.target is CHOOSE for node in plain.graph.nodes) == 3 * 39
    for got, want in zip(plain(X), alive(X), strict=True):
        torch.testing.assert_close(got, want)


def test_large_constants_are_not_computed_for_a_condition() -> None:
    """A file may ask for any size."""

    def large(x: Tensor) -> Any:
        return torch.cond(torch.ones(1 << 40).sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))

    plain = make_plain(torch.export.export(Function(large), (X,)))
    assert sum(node.target is CHOOSE for node in plain.graph.nodes) == 1


def test_a_condition_may_be_deep() -> None:
    def deep(x: Tensor) -> Any:
        y = x
        for _ in range(400):
            y = y.relu()
        return torch.cond(y.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))

    plain = make_plain(torch.export.export(Function(deep), (X,)))
    assert sum(node.target is CHOOSE for node in plain.graph.nodes) == 1


def test_loops_of_known_length_leave_no_trace() -> None:
    assert set(names(check_module(counted, X))) == {"mul", "add"}


def test_images_stay_channels_last_in_branches() -> None:
    graph = check_module(Branches(), SIDES[0])
    assert names(graph).count("permute") == 1  # of the input


class Gated(nn.Module):
    """Remembers its input, if that is large."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(2, 4))
        self.last: Tensor

    def forward(self, x: Tensor) -> Tensor:
        following = torch.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: b - 1, (x, self.last))
        self.last.copy_(following)
        return following * 2


def test_state_may_be_chosen() -> None:
    module = Gated()
    with closing(baretorch.compile(module, (X,), board="host")) as model:
        for x in (X, -X, -X, X):
            np.testing.assert_allclose(model.run(x), module(x).numpy(), atol=1e-6)


SLOW = pytest.param("pico", True, marks=pytest.mark.slow, id="int8 on pico")


@pytest.mark.parametrize(("board", "int8"), [("mps2-an386", False), ("pico", False), ("mps2-an386", True), SLOW])
def test_one_branch_runs(board: str, int8: bool) -> None:
    """The answers are right both ways, and the cheap way costs less than two thirds."""
    module = Branches()
    samples = [(x * scale,) for x in SIDES for scale in (0.5, 1.0)]
    counts = []
    with (
        closing(baretorch.compile(module, SIDES[:1], board=board, calibration=samples if int8 else None)) as model,
        torch.no_grad(),
    ):
        for x in SIDES:
            np.testing.assert_allclose(model.run(x), module(x).numpy(), atol=0.1 if int8 else 1e-4)
            counts.append(model.instructions)
    costly, cheap = counts
    assert costly is not None and cheap is not None and 3 * cheap < 2 * costly


def test_the_judge_sees_a_missing_guard() -> None:
    """Each step of a branch without its guards, one at a time: a side that is always made, or a condition that is not
    made where it is read."""
    compiled = compile_source(from_module(Function(nested), (X,), "m"), load_board("host"))
    plan = compiled.plan
    check_guards(plan)
    deep = [i for i, step in enumerate(plan.steps) if step.guards]
    assert len(deep) >= 4
    unseen = []
    for i in deep:
        steps = tuple(replace(s, guards=()) if n == i else s for n, s in enumerate(plan.steps))
        try:
            check_guards(replace(plan, schedule=one_by_one(steps)))
        except InternalError:
            continue
        unseen.append(plan.steps[i].call.op.name)
    assert unseen == ["mul"]  # it reads the input alone and is no side: to run it always is right, if slow


def test_a_condition_may_come_long_after_what_needs_it() -> None:
    b = Builder()
    x = b.input("x", (4,), DType.FLOAT32)
    side, deep = b.add(Sin(), x), x
    for _ in range(1500):
        deep = b.add(Tanh(), deep)
    condition = b.add(Lt(), b.add(Sum((0,), False), deep), b.add(Sum((0,), False), x))
    graph = b.graph([x], [b.add(Choose(), condition, side, x)])
    nodes = find_guards(graph).graph.nodes
    assert [node.op.name for node in nodes[-3:]] == ["lt", "sin", "choose"]


def test_many_conditions_are_judged_one_by_one() -> None:
    """24 choices in one buffer: not all 2^24 ways."""
    b = Builder()
    x = b.input("x", (4,), DType.FLOAT32)
    conditions = [b.input(f"c{i}", (), DType.BOOL) for i in range(24)]
    rows = [b.add(Choose(), c, b.add(Sin(), x), b.add(Cos(), x)) for c in conditions]
    graph = b.graph([x, *conditions], [b.add(Tanh(), b.add(Cat(0), *rows))])
    plan = make_plan(graph, load_board("host"))
    sides = [step for step in plan.steps if step.guards]
    assert len(sides) == 48 and len({step.operands[-1].storage for step in sides}) == 1
    with pytest.raises(InternalError, match="tanh reads cat, which is not made under all conditions"):
        check_guards(replace(plan, schedule=one_by_one([step for step in plan.steps if step is not sides[3]])))


def test_branches_that_return_their_input_are_refused() -> None:
    def shared(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, (x,))

    with pytest.raises(CompileError) as caught:
        from_module(Function(shared), (X,), "m")
    assert (
        caught.value.render()
        == """error: torch.export cannot take this model apart
  have  cond_true might be aliasing the input or the output!
  try   a branch or loop must not return the same tensor twice, nor one of its inputs: return x.clone()"""
    )


@pytest.mark.parametrize(
    ("loop", "text"),
    [
        (
            lambda x: while_loop(lambda y: y.norm() > 1, lambda y: (y * 0.5,), (x,)),
            "while_loop: no end is in sight after 64 turns",
        ),
        (
            lambda x: while_loop(lambda i, y: i < 500, lambda i, y: (i + 1, y * 0.5), (torch.tensor(0), x)),
            "while_loop: no end is in sight after 256 turns",
        ),
    ],
    ids=["by data", "too long"],
)
def test_loops_without_end_are_refused(loop: Callable[..., Any], text: str) -> None:
    with pytest.raises(CompileError) as caught:
        lower_graph(from_module(Function(loop), (X,), "m").graph)
    assert text in caught.value.render()
    assert "a counter" in caught.value.render()


def test_layers_in_branches_and_loops_keep_their_names() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Branches()
            self.last = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = torch.cond(x.max() > 5, lambda x: self.inner(x).cos(), lambda x: self.inner(-x), (x,))
            return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, self.last(y)), (torch.tensor(0), y))[1]

    graph = from_module(Deep(), (IMAGE,), "m").graph
    layers = [graph[n.outputs[0]].origin.path for n in graph.nodes if n.op.name in ("conv2d", "linear")]
    inner = [f"inner.{name}" for name in ("stem", "costly.0", "costly.2", "cheap", "head")]
    assert layers == [*inner, *inner, "last", "last"]
    (cos,) = (n for n in graph.nodes if isinstance(n.op, Cos))
    assert graph[cos.outputs[0]].origin.path == ""

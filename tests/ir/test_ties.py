"""Equal elements: PyTorch and ours return the same indices, and an index is judged by what it points at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from baretorch import pipeline
from baretorch.frontends import Source, from_module
from baretorch.frontends.torch.export import InPyTorch
from baretorch.frontends.torch.modes import FirstOfEquals
from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Shape, interpret
from baretorch.ir.ties import replace_tied_indices
from baretorch.measure.facts import compare
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.logic import Cast
from baretorch.ops.move import Slice
from baretorch.ops.scan import ArgMax, ArgMin, KthValue, Median, Mode, TopK
from baretorch.passes.equivalence import WrongStep
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model, seeded

Ordering = Callable[[torch.Tensor], Any]

ORDERINGS: dict[str, tuple[Ordering, Op]] = {
    "argmax": (lambda x: x.argmax(1), ArgMax(1, False)),
    "argmin": (lambda x: x.argmin(1), ArgMin(1, False)),
    "max": (lambda x: x.max(1).indices, ArgMax(1, False)),
    "min": (lambda x: x.min(1).indices, ArgMin(1, False)),
    "topk": (lambda x: x.topk(9, 1).indices, TopK(9, 1)),
    "topk unsorted": (lambda x: x.topk(9, 1, sorted=False).indices, TopK(9, 1)),
    "the least": (lambda x: x.topk(9, 1, False).indices, TopK(9, 1, False)),
    "sort": (lambda x: x.sort(1).indices, TopK(40, 1, False)),
    "unstable sort": (lambda x: torch.sort(x, dim=1, stable=False).indices, TopK(40, 1, False)),
    "descending": (lambda x: x.sort(1, descending=True).indices, TopK(40, 1)),
    "argsort": (lambda x: x.argsort(1), TopK(40, 1, False)),
    "kthvalue": (lambda x: x.kthvalue(20, 1).indices, KthValue(1, 19)),
    "median": (lambda x: x.median(1).indices, Median(1)),
    "nanmedian": (lambda x: x.nanmedian(1).indices, Median(1, True)),
    "mode": (lambda x: x.mode(1).indices, Mode(1)),
}


def tied(shape: Shape = (6, 40, 3)) -> torch.Tensor:
    """Mostly zeros, and few other numbers."""
    return torch.relu(torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 2).round()


@pytest.mark.parametrize("name", ORDERINGS)
def test_pytorch_orders_equal_elements_as_we_do(name: str) -> None:
    torch_op, op = ORDERINGS[name]
    x = tied()
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode, FirstOfEquals():
            np.testing.assert_array_equal(torch_op(x).numpy(), op.reference(x.numpy())[-1])


@pytest.mark.parametrize("keepdim", [False, True])
def test_values_and_shapes_are_pytorchs_own(keepdim: bool) -> None:
    x = tied()
    x[0, 3] = torch.nan
    orders: list[Ordering] = [
        lambda x: x.kthvalue(4, 1, keepdim),
        lambda x: x.median(1, keepdim),
        lambda x: x.nanmedian(1, keepdim),
        lambda x: x.mode(1, keepdim),
        lambda x: x.topk(4, 1),
        lambda x: x.sort(1),
        lambda x: x[0, 0, 0].sort(),
        lambda x: x[0, 0, 0].topk(1),
        lambda x: x[0, 0, 0].median(0, keepdim),
    ]
    for order in orders:
        plain = order(x)
        with FirstOfEquals():
            made = order(x)
        np.testing.assert_array_equal(made.values, plain.values)
        assert made.indices.shape == plain.indices.shape and made.indices.dtype == plain.indices.dtype


class Ordered(nn.Module):
    """A model that computes with the order of scores, many of which are 0."""

    def __init__(self, use: Ordering) -> None:
        super().__init__()
        self.scores, self.use = nn.Linear(8, 24), use
        self.table = nn.Parameter(torch.randn(24, 5))
        self.register_buffer("constant", tied((24,)))

    def forward(self, x: torch.Tensor) -> Any:
        return self.use(self, torch.relu(self.scores(x)))  # type: ignore[call-arg, arg-type]


USES: dict[str, Any] = {
    "topk": lambda m, y: torch.topk(y, 16, -1),
    "least": lambda m, y: torch.topk(y, 5, -1, largest=False).indices,
    "sort": lambda m, y: torch.sort(y, -1, descending=True),
    "argsort": lambda m, y: torch.argsort(y, -1),
    "kthvalue": lambda m, y: torch.kthvalue(y, 3, -1),
    "median": lambda m, y: torch.median(y, -1),
    "mode": lambda m, y: torch.mode(y, -1),
    "max and argmin": lambda m, y: (y.max(-1), y.argmin(-1), (-y).argmax(-1)),
    "one_hot": lambda m, y: F.one_hot(y.argmin(-1), 24) * 2.0,
    "gather by indices": lambda m, y: torch.gather(m.table[:, 0][None].expand(3, 24), 1, y.argsort(-1)),
    "rows by indices": lambda m, y: m.table[y.topk(20, -1).indices].cumsum(1),
    "scatter by indices": lambda m, y: torch.zeros_like(y).scatter(1, y.topk(14, -1).indices, 1.0),
    "the order of constants": lambda m, y: y[:, m.constant.argsort()],
}


def source_of(name: str) -> Source:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    return from_module(seeded(Ordered(USES[name])), (x,), "net")


@pytest.mark.parametrize("name", USES)
def test_models_that_order_equal_scores(name: str, tmp_path: Path) -> None:
    """They compile, an image gives the answers of PyTorch, and so does the model itself where it is asked again."""
    source = source_of(name)
    compiled = compile_model(source, load_board("mps2-an386"))
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    assert facts.max_error <= 1e-5 and not facts.warnings
    assert source.eager is not None and isinstance(source.eager(), InPyTorch)
    x = torch.from_numpy(np.ascontiguousarray(source.examples[0]))
    again = source.eager()(x)
    assert source.expected is not None
    for have, want in zip(again if isinstance(again, tuple) else (again,), source.expected, strict=True):
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("name", ["topk", "argsort", "one_hot", "rows by indices"])
def test_a_wrong_order_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators of one pass return the last of equal elements, or the neighbour of the right one."""
    source = source_of(name)
    pipeline.lower(source)

    def last(op: Op, x: Array) -> tuple[Array, ...]:
        (*values, indices) = plain[type(op)](op, np.flip(x, op.axis))  # type: ignore[attr-defined]
        return (*values, x.shape[op.axis] - 1 - indices)  # type: ignore[attr-defined]

    def beside(op: Op, x: Array) -> tuple[Array, ...]:
        (*values, indices) = plain[type(op)](op, x)
        return (*values, (indices + 1) % x.shape[op.axis])  # type: ignore[attr-defined]

    plain: dict[type[Op], Any] = {TopK: TopK.reference, ArgMin: ArgMin.reference}
    for wrong in (last, beside):
        for op in plain:
            monkeypatch.setattr(op, "reference", wrong)
        with pytest.raises(WrongStep):
            pipeline.lower(source)


# --- what is nearly equal, or equal in int8 only -------------------------------------------------------------


def ordering(op: Op, *moves: Op) -> Graph:
    b = Builder()
    y = b.add_many(op, b.input("x", (2, 6), DType.FLOAT32))[-1]
    for move in moves:
        y = b.add(move, y)
    return b.graph(["x"], [y])


X = np.array([[0, 3, 1, 3, 0, 0], [5, 5 + 1e-5, 2, 2, 2, 1]], np.float32)
NAN = np.where(X == 3, np.float32(np.nan), X)


@pytest.mark.parametrize(
    ("x", "op", "have", "right"),
    [
        (X, ArgMax(1, False), [3, 0], True),
        (X, ArgMax(1, False), [1, 1], True),
        (X, ArgMax(1, False), [2, 1], False),
        (X, ArgMax(1, False), [1, 2], False),
        (X, ArgMax(1, False), [-1, 1], False),
        (X, ArgMax(1, False), [1, 6], False),
        (NAN, ArgMax(1, False), [3, 1], True),
        (NAN, ArgMax(1, False), [2, 1], False),
        (X, TopK(4, 1), [[3, 1, 2, 5], [1, 0, 4, 3]], True),
        (X, TopK(4, 1), [[3, 1, 5, 2], [1, 0, 4, 3]], False),
        (X, TopK(4, 1), [[1, 1, 2, 5], [1, 0, 4, 3]], False),
        (X, KthValue(1, 1), [5, 3], True),
        (X, KthValue(1, 1), [2, 3], False),
        (X, Mode(1), [0, 2], True),
        (X, Mode(1), [1, 2], False),
    ],
)
def test_an_index_is_as_right_as_what_it_points_at(x: Array, op: Op, have: list[Any], right: bool) -> None:
    graph = ordering(op)
    (want,) = interpret(graph, [x]).values()
    (made,) = replace_tied_indices(graph, [x], [np.array(have)], [want])
    assert np.array_equal(made, want) is right


def test_indices_may_have_been_moved() -> None:
    moves = (Slice(1, 1, 4), Permute((1, 0)), Reshape((6, 1)), Cast("float32"))
    graph = ordering(TopK(6, 1), *moves)
    (want,) = interpret(graph, [X]).values()
    other = interpret(ordering(TopK(6, 1), *moves), [X[:, ::-1].copy()])
    turned = 5 - next(iter(other.values()))
    assert not np.array_equal(turned, want)
    (made,) = replace_tied_indices(graph, [X], [turned], [want])
    np.testing.assert_array_equal(made, want)
    wrong = turned.copy()
    wrong[0] = 2  # in place of 1 or 3
    (made,) = replace_tied_indices(graph, [X], [wrong], [want])
    assert not np.array_equal(made, want)


def test_what_is_made_of_an_index_is_compared_as_it_is() -> None:
    b = Builder()
    y = b.add(ArgMax(1, True), b.input("x", (2, 6), DType.FLOAT32))
    graph = b.graph(["x"], [b.add(ArgMax(1, False), y)])
    assert replace_tied_indices(graph, [X], [np.array([0, 1])], [np.array([0, 0])])[0].tolist() == [0, 1]


def test_run_does_not_count_ties_of_int8(tmp_path: Path) -> None:
    """Int8 makes scores equal that float keeps apart; what points at another score is an error still."""

    net = seeded(nn.Sequential(nn.Linear(8, 40), nn.ReLU()))
    x = torch.randn(1, 8, generator=torch.Generator().manual_seed(1))
    scores = net(x).detach()
    near = int(scores.argmax())
    with torch.no_grad():  # the next element is as large but for a part of a step
        net[0].weight[(near + 1) % 40] = net[0].weight[near]
        net[0].bias[(near + 1) % 40] = net[0].bias[near] + 3e-4 * scores.max()

    class Best(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x).argmax(-1)

    source = from_module(Best(), (x,), "best")
    compiled = compile_model(int8_model(source, [(x,)]), load_board("mps2-an386"))
    image = pipeline.build_image(compiled, tmp_path)
    run = pipeline.run_image(compiled, image)
    assert source.expected is not None and source.expected[0].tolist() != run.first[0].tolist()
    assert compare(compiled, image, run).max_error == 0
    wrong = (run.first[0] * 0 + int(scores.argmin()),)
    assert compare(compiled, image, replace(run, first=wrong, outputs=wrong)).max_error > 0

"""Passes and plans that spare copies: before, after, and the meaning unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.functions import Tanh
from baretorch.ops.index import IndexSelect
from baretorch.ops.layout import Expand, Flip, Permute
from baretorch.ops.move import Cat, Slice, SliceScatter
from baretorch.passes.layout import layout
from baretorch.passes.order import lower_graph
from baretorch.passes.views import drop_expand
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from tests.frontends.lower import names
from tests.passes.test_passes import check


def test_an_expansion_that_is_broadcast_anyway_goes() -> None:
    b = Builder()
    x = b.input("x", (2, 3, 4), DType.FLOAT32)
    row = b.input("row", (4,), DType.FLOAT32)
    y = b.add(Mul(), b.add(Expand((2, 3, 4)), row), x)
    check(b.graph([x, row], [y]), drop_expand, ["mul"])


def test_an_expansion_that_gives_the_shape_stays() -> None:
    """One of two equal expansions must stay, and so must one that other operators read."""
    b = Builder()
    x = b.input("x", (4,), DType.FLOAT32)
    y = b.add(Expand((3, 4)), x)
    sum_ = b.add(Add(), y, y)
    check(b.graph([x], [sum_, b.add(Tanh(), y)]), drop_expand, ["expand", "add", "tanh"])


NCHW, NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def test_parts_of_images_are_taken_channels_last() -> None:
    b = Builder()
    x = b.add(Permute(NCHW), b.input("x", (1, 4, 5, 6), DType.FLOAT32))
    left, right = b.add(Slice(1, 0, 3), x), b.add(Slice(1, 3, 6), x)
    y = b.add(SliceScatter(2, 1), b.add(Cat(1), right, b.add(Flip((3, 1)), left)), b.add(Slice(2, 0, 2), x))
    y = b.add(IndexSelect(1), y, b.const("shuffle", np.array([0, 3, 1, 4, 2, 5], np.int32)))
    after = check(
        b.graph(["x"], [b.add(Permute(NHWC), y)]),
        layout,
        ["slice", "slice", "flip", "cat", "slice", "slice_scatter", "index_select"],
    )
    assert [n.op for n in after.nodes if isinstance(n.op, (Flip, Cat))] == [Flip((2, 3)), Cat(3)]


def copies(graph: Graph) -> int:
    """Steps of the plan that only copy a whole tensor."""
    return sum(step.call.op.name == "copy" for step in make_plan(graph, load_board("host")).steps)


@pytest.mark.parametrize(("read_again", "expected"), [(False, 0), (True, 1)])
def test_a_part_is_overwritten_in_place_if_the_whole_is_not_read(read_again: bool, expected: int) -> None:
    b = Builder()
    x = b.input("x", (4, 3), DType.FLOAT32)
    base = b.add(Tanh(), x)
    y = b.add(SliceScatter(1, 1), base, b.input("part", (4, 1), DType.FLOAT32))
    outputs = [y, b.add(Tanh(), base)] if read_again else [y]
    assert copies(b.graph([x, "part"], outputs)) == expected


def test_a_part_of_itself_is_not_written_in_place() -> None:
    b = Builder()
    x = b.add(Tanh(), b.input("x", (4, 3), DType.FLOAT32))
    y = b.add(SliceScatter(0, 1), x, b.add(Slice(0, 0, 3), x))
    assert copies(b.graph(["x"], [y])) == 1


def test_state_is_changed_in_place() -> None:
    b = Builder()
    x = b.input("x", (1, 3), DType.FLOAT32)
    b.input("past", (8, 3), DType.FLOAT32)
    y = b.add(SliceScatter(0, 2), "past", x)
    graph = b.graph([x], [b.add(Tanh(), y)], [State("past", y, np.zeros((8, 3), np.float32))])
    assert copies(graph) == 0


def test_a_cnn_that_concatenates_needs_no_permutation() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Conv2d(3, 4, 1)
            self.b = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.a(x), self.b(x)], 1)[:, 2:].mean((2, 3))

    x = torch.randn(1, 3, 6, 6).to(memory_format=torch.channels_last)
    graph = lower_graph(from_module(Branches(), (x,), "m").graph)
    assert "permute" not in names(graph)

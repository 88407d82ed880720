"""split_linear: one layer per part where a layer's result is only cut."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Builder, DType, Graph, interpret
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Add
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Slice
from baretorch.passes.split import split_linear


def layer(b: Builder, out: int) -> str:
    rng = np.random.default_rng(0)
    x = b.input("x", (2, 3, 4), DType.FLOAT32)
    weight = b.const("weight", rng.standard_normal((out, 4)).astype(np.float32))
    return b.add(Linear(), x, weight, b.const("bias", rng.standard_normal(out).astype(np.float32)), name="y")


def split(b: Builder, *outputs: str) -> list[str]:
    """The operators after the pass, which changes no value and no name of an output."""
    graph = verify(b.graph(["x"], outputs))
    after = verify(split_linear(graph))
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    before, then = interpret(graph, [x]), interpret(after, [x])
    assert list(before) == list(then)
    for name in before:
        np.testing.assert_array_equal(before[name], then[name])
    return ops(after)


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_halves() -> None:
    b = Builder()
    y = layer(b, 6)
    assert split(b, b.add(Slice(2, 0, 3, 1), y), b.add(Slice(2, 3, 6, 1), y)) == ["linear", "linear"]


def test_through_reshapes_and_permutations() -> None:
    """Attention cuts its projection like this: [.., 3 * 4] -> [.., 3, 4], with the cut axis at the front."""
    b = Builder()
    y = b.add(Reshape((1, 2, 3, 3, 4)), layer(b, 12))
    y = b.add(Reshape((3, 2, 3, 4)), b.add(Permute((3, 1, 2, 0, 4)), y))
    parts = [b.add(Slice(0, i, i + 1, 1), y) for i in range(3)]
    assert split(b, *parts) == ["linear", "reshape", "permute", "reshape"] * 3


def test_parts_of_several_indices() -> None:
    b = Builder()
    y = b.add(Reshape((6, 3, 4)), layer(b, 12))
    assert split(b, b.add(Slice(1, 1, 3, 1), y)) == ["linear", "reshape"]


def test_what_is_read_otherwise_stays_whole() -> None:
    b = Builder()
    y = layer(b, 6)
    assert split(b, b.add(Slice(2, 0, 3, 1), y), b.add(Add(), y, y)) == ["linear", "slice", "add"]
    b = Builder()
    y = layer(b, 6)
    assert split(b, y, b.add(Slice(2, 0, 3, 1), y)) == ["linear", "slice"]


def test_parts_that_overlap_would_be_computed_twice() -> None:
    b = Builder()
    y = layer(b, 6)
    assert split(b, b.add(Slice(2, 0, 4, 1), y), b.add(Slice(2, 2, 6, 1), y)) == ["linear", "slice", "slice"]


def test_cuts_across_the_rows_of_the_weight() -> None:
    b = Builder()
    assert split(b, b.add(Slice(1, 0, 2, 1), layer(b, 6))) == ["linear", "slice"]
    b = Builder()  # the second factor: every part has some of every row
    y = b.add(Reshape((2, 3, 3, 4)), layer(b, 12))
    assert split(b, b.add(Slice(3, 0, 2, 1), y)) == ["linear", "reshape", "slice"]
    b = Builder()
    assert split(b, b.add(Slice(2, 0, 6, 2), layer(b, 6))) == ["linear", "slice"]

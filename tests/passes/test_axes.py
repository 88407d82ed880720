"""The layout pass carries permutations through operators that name the axes they work along."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import Array, Builder, DType, Op, interpret
from baretorch.ir.verify import verify
from baretorch.ops.layout import Permute
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.reduce import Amax, Mean
from baretorch.ops.scan import ArgMax, CumSum, TopK
from baretorch.ops.softmax import LogSoftmax
from baretorch.passes.layout import layout

TO_NCHW = (0, 3, 1, 2)
RNG = np.random.default_rng(0)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "places", "becomes", "left"),
    [
        (LogSoftmax(1), None, LogSoftmax(3), TO_NCHW),
        (CumSum(3), None, CumSum(2), TO_NCHW),
        (TopK(2, 1), None, TopK(2, 3), TO_NCHW),
        (ArgMax(1, False), None, ArgMax(3, False), None),
        (ArgMax(2, True), None, ArgMax(1, True), TO_NCHW),
        (Amax((1, 3), False), None, Amax((2, 3), False), None),
        (Mean((0, 2), False), None, Mean((0, 1), False), (1, 0)),  # C and W are left, in the order W, C
        (GroupNorm(3, 0.1), (6,), GroupNorm(3, 0.1, 3), TO_NCHW),
        (LayerNorm((1, 2, 3), 0.1), (6, 4, 5), LayerNorm((3, 1, 2), 0.1), TO_NCHW),
        (LayerNorm((3,), 0.1), (5,), LayerNorm((2,), 0.1), TO_NCHW),
    ],
)
def test_axes_follow_the_permutation(
    op: Op, places: tuple[int, ...] | None, becomes: Op, left: tuple[int, ...] | None
) -> None:
    b = Builder()
    x = b.input("x", (2, 4, 5, 6), DType.FLOAT32)
    weights = [b.const(name, random(*places)) for name in ("weight", "bias")] if places else []
    graph = verify(b.graph([x], b.add_many(op, b.add(Permute(TO_NCHW), x), *weights)))
    after = verify(layout(graph))
    assert after.nodes[0].op == becomes
    assert [node.op for node in after.nodes[1:]] == [Permute(left)] * (len(graph.outputs) if left else 0)
    data = [random(2, 4, 5, 6)]
    for have, want in zip(interpret(after, data).values(), interpret(graph, data).values(), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


def test_a_group_norm_whose_batch_moves_waits_for_the_permutation() -> None:
    b = Builder()
    x = b.input("x", (4, 2, 3), DType.FLOAT32)
    one, zero = b.const("one", np.ones(1, np.float32)), b.const("zero", np.zeros(1, np.float32))
    y = b.add(GroupNorm(2, 0.1), b.add(Permute((1, 0, 2)), x), one, zero)
    after = verify(layout(verify(b.graph([x], [y]))))
    assert [node.op for node in after.nodes] == [Permute((1, 0, 2)), GroupNorm(2, 0.1)]


def test_a_permuted_weight_does_not_permute_the_input() -> None:
    b = Builder()
    x = b.input("x", (2, 3, 4), DType.FLOAT32)
    weight = b.add(Permute((1, 0)), b.input("w", (4, 3), DType.FLOAT32))
    y = b.add(LayerNorm((1, 2), 0.1), x, weight, b.const("zero", np.zeros(1, np.float32)))
    after = verify(layout(verify(b.graph([x, "w"], [y]))))
    assert [node.op for node in after.nodes] == [Permute((1, 0)), LayerNorm((1, 2), 0.1)]

"""Which layers are kept in fours of weights that are not zero, and that these say all of them."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import Array, DType, Op, Tensor
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.packing.sparse import COSTS, LARGEST, fours, wins
from baretorch.plan.select import select_kernel
from baretorch.targets.boards import load_board
from tests.ops.cases.sparse import CASES


def rows(out: int, in_: int, part: float) -> Array:
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 127, (out, in_ // 4, 4)) * (rng.random((out, in_ // 4)) < part)[..., None]
    return weight.reshape(out, in_).astype(np.int8)


def call(op: Op, x: tuple[int, ...], weight: Array) -> Call[Op]:
    out = len(weight)
    inputs = (
        Tensor("x", x, DType.INT8),
        Tensor("weight", weight.shape, DType.INT8, data=weight),
        *(Tensor(n, (out,), DType.INT32, data=np.full(out, 1 << 20, np.int32)) for n in ("bias", "multiplier")),
    )
    (y,) = op.infer(inputs)
    return Call(op, inputs, (Tensor("y", y.shape, y.dtype),))


def whole(weight: Array) -> Array:
    """Return the weights that the groups of four represent."""
    found, at, made = fours(weight), 0, np.zeros_like(weight)
    for row, count in enumerate(found.counts):
        block = 0
        for i in range(at, at + count):
            block += int(found.steps[i])
            made[row, 4 * block : 4 * block + 4] = found.weight[4 * i : 4 * i + 4]
        at += count
    assert at == len(found.steps) and 4 * at == len(found.weight)
    return made


@pytest.mark.parametrize("part", [0.0, 0.1, 0.7, 1.0])
def test_nothing_is_lost(part: float) -> None:
    weight = rows(9, 40, part)
    np.testing.assert_array_equal(whole(weight), weight)


def test_steps_that_are_too_long() -> None:
    weight = np.zeros((2, 4 * (2 * LARGEST + 3)), np.int8)
    weight[:, -1] = 5
    np.testing.assert_array_equal(whole(weight), weight)
    assert fours(weight).counts.tolist() == [3, 3]
    assert fours(weight).steps.tolist() == [LARGEST, LARGEST, 2] * 2


@pytest.mark.parametrize(
    ("board", "part", "linear", "pixels"),
    [
        ("mps2-an386", 0.2, "bt_qlinear_sparse_dsp", "bt_qlinear_sparse_dsp"),
        ("mps2-an386", 0.6, "bt_qlinear_dsp", "bt_qconv2d_dsp"),
        ("pico", 0.15, "bt_qlinear_sparse_ref", "bt_qlinear_sparse_ref"),
        ("pico", 0.35, "bt_qlinear_sparse_ref", "bt_qconv2d_triples"),
        ("pico", 0.6, "bt_qlinear_fours", "bt_qconv2d_triples"),
        ("mps2-an385", 0.6, "bt_qlinear_sparse_ref", "bt_qlinear_sparse_ref"),
        ("virt-rv32", 0.9, "bt_qlinear_fours", "bt_qconv2d_triples"),
        ("mps3-an547", 0.1, "bt_qlinear_mve", "bt_qconv2d_pixels_mve"),
    ],
)
def test_the_cheaper_kernel_is_taken(board: str, part: float, linear: str, pixels: str) -> None:
    weight, cpu = rows(64, 128, part), load_board(board).chip.cpu
    assert select_kernel(call(QLinear(0), (1, 128), weight), cpu).symbol == linear
    image = call(QConv2d(0, 0), (1, 5, 5, 128), weight.reshape(64, 1, 1, 128))
    assert select_kernel(image, cpu).symbol == pixels


def test_what_is_not_taken() -> None:
    weight, cpu = rows(16, 48, 0.1), load_board("mps2-an386").chip.cpu
    for op, shape in (
        (QConv2d(0, 0, padding=(1, 1, 1, 1)), (16, 1, 1, 48)),
        (QConv2d(0, 0, stride=(2, 2)), (16, 1, 1, 48)),
        (QConv2d(0, 0), (16, 2, 2, 12)),
        (QConv2d(0, 0, groups=2), (16, 1, 1, 24)),
    ):
        x = (1, 8, 8, shape[3] * op.groups)
        made = call(op, x, weight.reshape(-1)[: int(np.prod(shape))].reshape(shape))
        assert "sparse" not in select_kernel(made, cpu).symbol
    assert "sparse" not in select_kernel(call(QLinear(0), (1, 46), weight[:, :46].copy()), cpu).symbol
    assert not wins(np.zeros((0, 8), np.int8), COSTS[next(iter(COSTS))][0])


def test_cases_are_those_of_these_kernels() -> None:
    """On the board that runs the whole table."""
    cpu = load_board("mps2-an386").chip.cpu
    for case in CASES:
        graph = case.graph()
        (node,) = graph.nodes
        made = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        assert select_kernel(made, cpu).symbol == "bt_qlinear_sparse_dsp", case.name

"""Elementwise, softmax, mean and layout: what they refuse and what their kernels do not fit."""

from __future__ import annotations

import pytest

from baretorch.ir.graph import DType, Op, Shape
from baretorch.ops import kernels_of
from baretorch.ops.elementwise import Add
from baretorch.ops.functions import Tanh
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.index import Gather, IndexPut, IndexSelect, RavelIndex, Scatter
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape
from baretorch.ops.move import SliceScatter
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.reduce import Amax, Mean, Sum, VectorNorm
from baretorch.ops.scan import ArgMax, TopK
from baretorch.ops.softmax import Softmax
from tests.ops.refusal import refusal, tensors


def test_broadcast() -> None:
    assert refusal(Add(), (2, 3), (2,)) == (
        "error: add: the shapes do not broadcast\n"
        "  have  x0 float32[2, 3], x1 float32[2]\n"
        "  need  counted from the last, dimensions that are equal or 1"
    )


def test_type() -> None:
    assert refusal(Tanh(), (2, 3), dtype=DType.INT32) == (
        "error: tanh: int32 is not supported\n"
        "  have  x0 int32[2, 3]\n"
        "  need  float32 everywhere\n"
        "  try   cast the tensor to float32 in the model"
    )


def test_axes() -> None:
    assert refusal(Softmax(-1), (2, 3)) == (
        "error: softmax: axes (-1,) are not those of a tensor of rank 2\n"
        "  have  x0 float32[2, 3]\n"
        "  need  distinct axes from 0 to 1"
    )
    assert "axes (0, 0)" in refusal(Mean((0, 0), False), (2, 3))
    assert "axes (0, 2)" in refusal(Permute((0, 2)), (2, 3))


def test_reductions() -> None:
    assert refusal(Sum((0,), False), (2, 3), dtype=DType.INT8) == (
        "error: sum: int8 is not supported\n"
        "  have  x0 int8[2, 3]\n"
        "  need  float32, int32, int64 or bool\n"
        "  try   cast the tensor to float32 in the model"
    )
    assert "need  float32\n" in refusal(Mean((0,), False), (2, 3), dtype=DType.INT32)
    for op in (Amax((1,), False), ArgMax(1, True), VectorNorm((1,), False, float("inf"))):
        assert "the axes have no elements" in refusal(op, (2, 0))
    assert "order 3.0 is not supported" in refusal(VectorNorm((1,), False, 3.0), (2, 3))
    assert "4 of 3 elements are requested" in refusal(TopK(4, 1), (2, 3))


def test_norms() -> None:
    assert refusal(LayerNorm((1, 2), 1e-5), (2, 3, 4), (4, 3), (1,)) == (
        "error: layer_norm: weight and bias do not have the shape of the normalised axes\n"
        "  have  x0 float32[2, 3, 4], x1 float32[4, 3], x2 float32[1]\n"
        "  need  weight and bias of shape [3, 4], or of a single element"
    )
    assert "weight and bias of shape [3]" in refusal(GroupNorm(1, 1e-5), (2, 3, 4), (3,), (4,))
    assert "3 channels are not 2 equal groups" in refusal(GroupNorm(2, 1e-5), (2, 3, 4), (3,), (3,))


def test_layout() -> None:
    assert "(1,) does not name every dimension" in refusal(Permute((1,)), (2, 3))
    assert "6 elements do not fit into shape (4, 2)" in refusal(Reshape((4, 2)), (2, 3))
    assert "do not fit into shape (-2, -3)" in refusal(Reshape((-2, -3)), (2, 3))
    assert "1 pairs of padding for 2 dimensions" in refusal(Pad(((1, 1),), 0.0), (2, 3))
    assert "crops more than the input has" in refusal(Pad(((0, 0), (-2, -2)), 0.0), (2, 3))


@pytest.mark.parametrize(
    ("op", "shapes", "fits"),
    [
        (Mean((1, 2), False), [(2, 3, 4, 5)], True),
        (Mean((1, 3, 5), False), [(2, 3, 4, 5, 2, 2)], True),
        (Mean((1, 3, 5), False), [(2, 3, 4, 5, 2, 2, 2)], False),
        (Mean((1, 3, 5), False), [(2, 3, 4, 5, 2, 2, 1)], True),
        (LayerNorm((2, 0), 1e-5), [(2, 3, 4), (4, 2), (1,)], True),
        (LayerNorm((0, 2, 4, 6), 1e-5), [(2, 2, 2, 2, 2, 2, 2), (1,), (1,)], False),
        (Add(), [(2, 1, 2, 1), (1, 2, 1, 2)], True),
        (Add(), [(2, 1, 2, 1, 2), (1, 2, 1, 2, 1)], False),
        (Permute((5, 4, 3, 2, 1, 0)), [(2, 2, 2, 2, 2, 2)], True),
        (Permute((6, 5, 4, 3, 2, 1, 0)), [(2, 2, 2, 2, 2, 2, 2)], False),
        (Pad(((1, 0),) * 4, 0.0), [(2, 2, 2, 2)], True),
        (Pad(((1, 0),) * 5, 0.0), [(2, 2, 2, 2, 2)], False),
    ],
)
def test_what_the_kernels_fit(op: Op, shapes: list[Shape], fits: bool) -> None:
    inputs = tensors(*shapes)
    outputs = tensors(*(s.shape for s in op.infer(inputs)))
    assert any(k.fits(Call(op, tuple(inputs), tuple(outputs))) for k in kernels_of(op)) is fits


@pytest.mark.parametrize(
    ("dtype", "shape", "symbol"),
    [
        (DType.FLOAT32, (2, 3, 5), "bt_move_32_ref"),
        (DType.INT64, (2, 3, 5), "bt_move_32_ref"),
        (DType.INT16, (2, 3, 5), "bt_move_16_ref"),
        (DType.INT8, (2, 3, 5), "bt_move_8_ref"),
        (DType.INT8, (2, 3, 6), "bt_move_16_ref"),
        (DType.INT8, (2, 3, 8), "bt_move_32_ref"),  # whole rows move, and words are faster
    ],
)
def test_adjacent_elements_move_in_the_largest_units(dtype: DType, shape: Shape, symbol: str) -> None:
    op = Permute((1, 0, 2))
    inputs = tensors(shape, dtype=dtype)
    outputs = tensors(*(s.shape for s in op.infer(inputs)), dtype=dtype)
    assert [k.symbol for k in kernels_of(op) if k.fits(Call(op, tuple(inputs), tuple(outputs)))] == [symbol]


def test_parts_and_indices() -> None:
    assert "shape (2, 3) does not expand to (2, 4)" in refusal(Expand((2, 4)), (2, 3))
    assert "axes (2,) are not those" in refusal(Flip((2,)), (2, 3))
    assert "the source is not a part of axis 1 from 2 on" in refusal(SliceScatter(1, 2), (2, 3), (2, 2))
    assert "float32 is not a valid index type" in refusal(IndexSelect(0), (2, 3), (2,))
    assert "an axis without elements is indexed" in refusal(IndexSelect(0), (0, 3), (2,), dtype=DType.INT32)
    assert "differ in more than the axis" in refusal(Gather(0), (2, 3), (2, 2), dtype=DType.INT32)
    assert "does not have the indexed shape" in refusal(IndexPut(0), (2, 3), (2,), (2, 2), dtype=DType.INT32)
    assert "source and index differ in shape" in refusal(Scatter(0), (2, 3), (1, 3), (2, 3), dtype=DType.INT32)
    assert "adding int64 is not supported" in refusal(Scatter(0, True), (2, 3), (1, 3), (1, 3), dtype=DType.INT64)
    assert "the indices differ in shape" in refusal(RavelIndex((2, 3)), (2,), (3,), dtype=DType.INT64)

"""Reshapes between permutations and layers: what lets a 1-D network fuse like a 2-D one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baretorch.ir.graph import Builder, DType, Shape
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.functions import Tanh
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import MaxPool2d
from baretorch.passes.fold import fold_affine
from baretorch.passes.fuse import fuse_clamp
from baretorch.passes.layout import layout
from baretorch.passes.regroup import regroup
from baretorch.passes.views import sink_views
from tests.passes.test_passes import check, random


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[Shape, tuple[int, ...], Shape]:
    """A shape, a permutation of it, and another shape of the permuted value."""
    sizes = st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=5)
    base = tuple(draw(sizes))
    dims = tuple(draw(st.permutations(range(len(base)))))
    rest, to = int(np.prod(base, dtype=int)), []
    for n in draw(sizes):
        if rest % n == 0:
            to.append(n)
            rest //= n
    to.insert(draw(st.integers(0, len(to))), rest)
    return base, dims, tuple(to)


@settings(derandomize=True, database=None, max_examples=400)
@given(reshapes())
def test_regroup_is_a_reshape_of_the_permuted_value(case: tuple[Shape, tuple[int, ...], Shape]) -> None:
    base, dims, to = case
    x = np.arange(np.prod(base, dtype=int)).reshape(base)
    new = regroup(base, dims, to)
    assert new is not None
    np.testing.assert_array_equal(
        x.transpose(new.order).reshape(new.shape).transpose(new.out), x.transpose(dims).reshape(to)
    )


@pytest.mark.parametrize(
    ("base", "dims", "to", "shape", "out"),
    [
        ((2, 1, 9, 4), (0, 3, 1, 2), (2, 4, 9), (2, 9, 4), (0, 2, 1)),  # an image of height 1 becomes a signal
        ((2, 9, 4), (0, 2, 1), (2, 4, 1, 9), (2, 1, 9, 4), (0, 3, 1, 2)),  # and back
        ((1, 5, 6, 4), (0, 3, 1, 2), (4, 5, 6), (5, 6, 4), (2, 0, 1)),  # no batch
        ((1, 5, 6, 8), (0, 3, 1, 2), (1, 2, 4, 5, 6), (1, 5, 6, 2, 4), (0, 3, 4, 1, 2)),  # groups of channels
    ],
)
def test_free_regroups(base: Shape, dims: tuple[int, ...], to: Shape, shape: Shape, out: tuple[int, ...]) -> None:
    new = regroup(base, dims, to)
    assert new is not None and new.free
    assert (new.shape, new.out) == (shape, out)


def test_regroup_of_nothing() -> None:
    assert regroup((2, 0, 3), (0, 2, 1), (6, 0)) is None


def test_layout_carries_signals() -> None:
    """Permutations around images of height 1 cancel across squeeze, elementwise operator and unsqueeze."""
    b = Builder()
    x = b.input("x", (2, 1, 9, 4), DType.FLOAT32)
    y = b.add(Reshape((2, 4, 9)), b.add(Permute((0, 3, 1, 2)), x))
    y = b.add(Mul(), b.add(Tanh(), y), b.const("column", random(4, 1)))
    y = b.add(Permute((0, 2, 3, 1)), b.add(Reshape((2, 4, 1, 9)), y))
    check(b.graph([x], [y]), layout, ["reshape", "tanh", "mul", "reshape"])


def test_layout_moves_to_the_last_place_at_once() -> None:
    """A pixel shuffle of an NHWC image as NCHW output: one permutation, not one to NHWC and one more."""
    b = Builder()
    x = b.input("x", (1, 3, 5, 8), DType.FLOAT32)
    y = b.add(Reshape((1, 2, 2, 2, 3, 5)), b.add(Permute((0, 3, 1, 2)), x))
    y = b.add(Reshape((1, 2, 6, 10)), b.add(Permute((0, 1, 4, 2, 5, 3)), y))
    check(b.graph([x], [y]), layout, ["reshape", "permute", "reshape"])


def test_layout_keeps_a_shuffled_image_channels_last() -> None:
    b = Builder()
    x = b.input("x", (1, 3, 5, 8), DType.FLOAT32)
    y = b.add(Reshape((1, 2, 2, 2, 3, 5)), b.add(Permute((0, 3, 1, 2)), x))
    y = b.add(Reshape((1, 2, 6, 10)), b.add(Permute((0, 1, 4, 2, 5, 3)), y))
    y = b.add(Permute((0, 2, 3, 1)), b.add(Tanh(), y))
    check(b.graph([x], [y]), layout, ["reshape", "permute", "reshape", "tanh"])


def test_sink_views() -> None:
    b = Builder()
    x = b.input("x", (2, 1, 9, 4), DType.FLOAT32)
    y = b.add(Conv2d(), x, b.const("w", random(5, 1, 1, 4)))
    y = b.add(Reshape((2, 9, 5)), y)
    y = b.add(Mul(), y, b.const("scale", random(1, 1, 5)))
    y = b.add(Add(), y, b.const("shift", random(1)))
    y = b.add(Reshape((2, 1, 9, 5)), b.add(Clamp(0.0, 1.0), y))
    y = b.add(MaxPool2d((1, 3), (1, 3)), y)
    after = check(b.graph([x], [y]), sink_views, ["conv2d", "mul", "add", "clamp", "reshape", "reshape", "max_pool2d"])
    assert [after[n.outputs[0]].shape for n in after.nodes[1:4]] == [(2, 1, 9, 5)] * 3


def test_sink_views_below_a_sum_of_two() -> None:
    b = Builder()
    x, y = (b.input(name, (2, 1, 3), DType.FLOAT32) for name in "xy")
    both = b.add(Add(lo=0.0), b.add(Reshape((2, 3)), x), b.add(Reshape((2, 3)), y))
    check(b.graph([x, y], [both]), sink_views, ["add", "reshape"])


def test_sink_views_leaves_what_it_must() -> None:
    """A constant over other axes, another shape underneath, a broadcast, and an operand that is not reshaped."""
    b = Builder()
    x = b.input("x", (2, 12), DType.FLOAT32)
    y, z = (b.input(name, shape, DType.FLOAT32) for name, shape in (("y", (24,)), ("z", (2, 3, 4))))
    view = b.add(Reshape((2, 3, 4)), x)
    column = b.add(Reshape((24, 1)), x)
    outs = [
        b.add(Mul(), view, b.const("rows", random(3, 1))),
        b.add(Mul(), view, b.const("channels", random(4))),
        b.add(Add(), view, b.add(Reshape((2, 3, 4)), y)),
        b.add(Add(), column, b.const("wide", random(12))),
        b.add(Add(), view, z),
    ]
    graph = b.graph([x, y, z], outs)
    check(graph, sink_views, [n.op.name for n in graph.nodes])


def test_fold_affine_and_clamp_into_conv_transpose2d() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 5, 6), DType.FLOAT32)
    y = b.add(ConvTranspose2d((2, 2), groups=2), x, b.const("w", random(4, 3, 3, 3)))
    y = b.add(Mul(), y, b.const("scale", random(4)))
    y = b.add(Clamp(0.0, 6.0), b.add(Add(), y, b.const("shift", random(1, 1, 1, 4))))
    after = check(b.graph([x], [y]), lambda g: fuse_clamp(fold_affine(g)), ["conv_transpose2d"])
    assert after.nodes[0].op == ConvTranspose2d((2, 2), groups=2, lo=0.0, hi=6.0)


def test_a_flattened_signal_is_another_order_of_columns() -> None:
    b = Builder()
    x = b.input("x", (2, 1, 5, 3), DType.FLOAT32)
    signal = b.add(Reshape((2, 3, 5)), b.add(Permute((0, 3, 1, 2)), x))
    y = b.add(Linear(), b.add(Reshape((2, 15)), signal), b.const("w", random(7, 15)))
    check(b.graph([x], [y]), layout, ["reshape", "reshape", "linear"])

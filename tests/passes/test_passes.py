"""Each pass: the graph before and after as text, and the meaning unchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Builder, DType, Graph, interpret
from baretorch.ir.text import to_text
from baretorch.ir.verify import verify
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.functions import Tanh
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import MaxPool2d
from baretorch.passes.fold import fold_affine, fold_constants, fold_padding
from baretorch.passes.fuse import fuse_clamp, fuse_pool
from baretorch.passes.layout import layout
from baretorch.passes.order import PASSES, lower_graph
from baretorch.passes.rewrite import dead_code
from baretorch.passes.views import views
from baretorch.pipeline import lower
from tests.models import cnn, cnn_input, mlp

RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(graph: Graph, rewrite: Callable[[Graph], Graph], nodes: list[str]) -> Graph:
    """Apply the pass; the answers stay, and these operators are left."""
    verify(graph)
    after = verify(rewrite(graph))
    inputs = [random(*graph[n].shape) for n in graph.inputs]
    for a, b in zip(interpret(graph, inputs).values(), interpret(after, inputs).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert [node.op.name for node in after.nodes] == nodes
    return after


def test_dead_code() -> None:
    b = Builder()
    x = b.input("x", (2,), DType.FLOAT32)
    b.add(Tanh(), x)
    b.const("unused", random(3))
    after = check(b.graph([x], [b.add(Clamp(0.0, 1.0), x)]), dead_code, ["clamp"])
    assert set(after.tensors) == {"x", "clamp"}


def test_fold_constants() -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    w = b.add(Permute((1, 0)), b.const("w", random(3, 2)))
    after = check(b.graph([x], [b.add(Add(), x, w)]), fold_constants, ["add"])
    assert after[after.nodes[0].inputs[1]].data is not None


@pytest.mark.parametrize("scalar", [False, True])
def test_fold_affine_into_linear(scalar: bool) -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    y = b.add(Linear(), x, b.const("w", random(4, 3)), b.const("b", random(4)))
    y = b.add(Mul(), y, b.const("scale", random(*(() if scalar else (4,)))))
    y = b.add(Add(lo=0.0), y, b.const("shift", random(*(() if scalar else (1, 4)))))
    after = check(b.graph([x], [y]), fold_affine, ["linear"])
    assert after.nodes[0].op == Linear(lo=0.0)


def test_fold_affine_leaves_what_it_must() -> None:
    """A result that two read, one that is limited before the product, and a constant that is not per channel."""
    b = Builder()
    x = b.input("x", (3, 3), DType.FLOAT32)
    w = b.const("w", random(3, 3))
    twice = b.add(Linear(), x, w)
    limited = b.add(Linear(lo=0.0), x, w)
    full = b.add(Linear(), x, w)
    outs = [
        b.add(Mul(), twice, b.const("c1", random(3))),
        b.add(Tanh(), twice),
        b.add(Mul(), limited, b.const("c2", random(3))),
        b.add(Mul(), full, b.const("c3", random(3, 1))),
    ]
    check(b.graph([x], outs), fold_affine, ["linear", "linear", "linear", "mul", "tanh", "mul", "mul"])


@pytest.mark.parametrize("permuted", [False, True])
def test_fold_padding(permuted: bool) -> None:
    b = Builder()
    if permuted:
        x = b.input("x", (1, 2, 5, 6), DType.FLOAT32)
        padded = b.add(Permute((0, 2, 3, 1)), b.add(Pad(((0, 0), (0, 0), (1, 0), (2, 3)), 0.0), x))
    else:
        x = b.input("x", (1, 5, 6, 2), DType.FLOAT32)
        padded = b.add(Pad(((0, 0), (1, 0), (2, 3), (0, 0)), 0.0), x)
    y = b.add(Conv2d(padding=(1, 1, 0, 0)), padded, b.const("w", random(4, 3, 3, 2)))
    after = check(b.graph([x], [y]), fold_padding, ["permute", "conv2d"] if permuted else ["conv2d"])
    assert after.nodes[-1].op == Conv2d(padding=(2, 1, 2, 3))


def test_fold_padding_leaves_other_values() -> None:
    b = Builder()
    x = b.input("x", (1, 5, 5, 1), DType.FLOAT32)
    padded = b.add(Pad(((0, 0), (1, 1), (1, 1), (0, 0)), 1.0), x)
    check(b.graph([x], [b.add(Conv2d(), padded, b.const("w", random(1, 3, 3, 1)))]), fold_padding, ["pad", "conv2d"])


def test_fuse_clamp() -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    y = b.add(Linear(), x, b.const("w", random(3, 3)), name="layer")
    y = b.add(Clamp(0.0, 6.0), b.add(Clamp(-1.0, 4.0), y))
    after = check(b.graph([x], [y]), fuse_clamp, ["linear"])
    assert after.nodes[0].op == Linear(lo=0.0, hi=4.0)
    assert after.outputs == ("layer",)


def test_fuse_clamp_leaves_a_result_that_others_read() -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    y = b.add(Linear(), x, b.const("w", random(3, 3)))
    check(b.graph([x], [b.add(Clamp(0.0, 6.0), y), y]), fuse_clamp, ["linear", "clamp"])


@pytest.mark.parametrize("first", [(-1.0, 1.0), (2.0, 5.0), (3.0, 1.0)])
@pytest.mark.parametrize("then", [(0.0, 6.0), (-3.0, -2.0), (4.0, 2.0)])
def test_composed_limits_do_both(first: tuple[float, float], then: tuple[float, float]) -> None:
    v = torch.linspace(-10, 10, 201)
    want = v.clamp(*first).clamp(*then)
    both = Clamp(*first).clamp(*then)
    assert isinstance(both, Clamp) and torch.equal(v.clamp(both.lo, both.hi), want)


def test_fuse_pool() -> None:
    b = Builder()
    x = b.input("x", (1, 7, 6, 2), DType.FLOAT32)
    y = b.add(Conv2d(padding=(1, 1, 1, 1), lo=0.0), x, b.const("w", random(4, 3, 3, 2)))
    after = check(b.graph([x], [b.add(MaxPool2d((2, 2), (2, 2), (0, 0, 0, 0)), y)]), fuse_pool, ["conv2d"])
    assert after.nodes[0].op == Conv2d(padding=(1, 1, 1, 1), lo=0.0, pool=(2, 2))


def test_fuse_pool_leaves_overlapping_windows() -> None:
    b = Builder()
    x = b.input("x", (1, 7, 7, 2), DType.FLOAT32)
    y = b.add(Conv2d(), x, b.const("w", random(4, 3, 3, 2)))
    check(b.graph([x], [b.add(MaxPool2d((3, 3), (2, 2), (0, 0, 0, 0)), y)]), fuse_pool, ["conv2d", "max_pool2d"])


def test_views_merge_and_vanish() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 3), DType.FLOAT32)
    y = b.add(Permute((1, 0, 2)), x)  # moves only a dimension of 1
    y = b.add(Reshape((2, 6)), b.add(Reshape((12,)), y))
    y = b.add(Tanh(), y)
    y = b.add(Reshape((2, 6)), b.add(Reshape((3, 4)), y))
    check(b.graph([x], [y]), views, ["reshape", "tanh"])


def test_layout_cancels_permutations() -> None:
    b = Builder()
    x = b.input("x", (1, 2, 4, 5), DType.FLOAT32)
    y = b.add(Permute((0, 3, 1, 2)), b.add(Tanh(), b.add(Permute((0, 2, 3, 1)), x)))
    y = b.add(Mul(), y, b.const("column", random(2, 1, 1)))
    check(b.graph([x], [b.add(Permute((0, 2, 3, 1)), y)]), layout, ["tanh", "mul", "permute"])


def test_layout_turns_a_flatten_into_another_order_of_columns() -> None:
    b = Builder()
    x = b.input("x", (2, 4, 5, 3), DType.FLOAT32)
    flat = b.add(Reshape((2, 60)), b.add(Permute((0, 3, 1, 2)), x))
    y = b.add(Linear(), flat, b.const("w", random(7, 60)))
    check(b.graph([x], [y]), layout, ["reshape", "linear"])


@pytest.mark.parametrize("build", [mlp, cnn])
@pytest.mark.parametrize("last", [False, True])
def test_every_stage_means_what_pytorch_means(build: Callable[[], nn.Module], last: bool) -> None:
    x = cnn_input(2) if build is cnn else torch.randn(2, 4)
    if last and build is cnn:
        x = x.to(memory_format=torch.channels_last)
    source: Source = from_module(build(), (x,), "m")
    graph = source.graph
    assert source.expected is not None
    for rewrite in (lambda g: g, *PASSES):
        graph = verify(rewrite(graph))
        for have, want in zip(interpret(graph, source.examples).values(), source.expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_the_cnn_after_all_passes() -> None:
    x = cnn_input().to(memory_format=torch.channels_last)
    graph = lower_graph(from_module(cnn(), (x,), "cnn").graph)
    assert [n.op.name for n in graph.nodes] == [
        "conv2d", "conv2d", "conv2d", "add", "conv2d", "mean", "reshape", "reshape", "linear", "softmax",
        "sigmoid", "mean", "tanh", "mul", "add",
    ]  # fmt: skip


def test_trace_writes_every_stage(tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = from_module(mlp(), (torch.zeros(1, 4),), "mlp")
    lower(source, trace=tmp_path)
    files = sorted(p.name for p in tmp_path.iterdir())
    assert len(files) == len(PASSES) + 1
    assert files[0] == "00_frontend.txt"
    assert (tmp_path / files[0]).read_text() == to_text(source.graph, data=False)

"""Leaving channels out of a graph is the same as reading zeros for them, wherever they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Builder, DType, Graph, Origin, Shape, interpret, with_data
from baretorch.ir.verify import verify
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.passes.prune import Channels, channels, drop_channels

RNG = np.random.default_rng(5)


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def image(b: Builder, channels: int = 3) -> str:
    return b.input("x", (1, 8, 8, channels), DType.FLOAT32)


def conv(b: Builder, x: str, out: int, size: int = 3, groups: int = 1) -> str:
    weight = b.const("weight", numbers(out, size, size, b.tensors[x].shape[-1] // groups))
    bias, p = b.const("bias", numbers(out)), size // 2
    return b.add(Conv2d(padding=(p, p, p, p), groups=groups, lo=0.0), x, weight, bias)


def linear(b: Builder, x: str, out: int) -> str:
    weight, bias = b.const("weight", numbers(out, b.tensors[x].shape[-1])), b.const("bias", numbers(out))
    return b.add(Linear(), x, weight, bias)


def perceptron(b: Builder) -> tuple[str, str]:
    x = b.input("x", (1, 6), DType.FLOAT32)
    return x, linear(b, linear(b, x, 12), 3)


def flattened(b: Builder) -> tuple[str, str]:
    """Build a model whose linear layer reads each channel from 16 places, after a pool."""
    x = image(b)
    y = b.add(MaxPool2d((2, 2), (2, 2)), conv(b, x, 5))
    return x, linear(b, b.add(Reshape((1, 4 * 4 * 5)), y), 3)


def depthwise(b: Builder) -> tuple[str, str]:
    x = image(b)
    y = conv(b, conv(b, conv(b, x, 6), 6, groups=6), 4, 1)
    return x, linear(b, b.add(Mean((1, 2), False), y), 3)


def residual(b: Builder) -> tuple[str, str]:
    """Both sides of a sum lose the same channels; a constant for each goes with them."""
    x = image(b)
    a = conv(b, x, 6)
    y = b.add(Add(), a, conv(b, conv(b, a, 4), 6))
    y = b.add(Mul(), y, b.const("factor", numbers(6)))
    return x, linear(b, b.add(Mean((1, 2), False), y), 3)


def read_by_pixel(b: Builder, y: str) -> str:
    """Five channels are made of an image, and read."""
    return linear(b, b.add(Mean((1, 2), False), conv(b, y, 5, 1)), 3)


def grouped(b: Builder) -> tuple[str, str]:
    """Return a model with as many groups as outputs, but two inputs each: no channel can be removed before and after it
    together."""
    x = image(b)
    return x, read_by_pixel(b, conv(b, conv(b, x, 8), 4, groups=4))


def repeated(b: Builder, out: int) -> tuple[str, str]:
    """Four channels, of which a convolution in `out` groups has each twice."""
    x = b.input("x", (1, 4, 4, 2, 3), DType.FLOAT32)
    y = b.add(Reshape((1, 4, 4, 8)), linear(b, x, 4))
    return x, read_by_pixel(b, conv(b, y, out, groups=out))


def outer(b: Builder, first: bool = True) -> tuple[str, str]:
    """One number times a constant is a channel for each of the constant's, and these go with those of a sum."""
    x = b.input("x", (1, 10), DType.FLOAT32)
    one, many = linear(b, x, 1), b.const("many", numbers(6))
    y = b.add(Mul(), *((one, many) if first else (many, one)))
    return x, linear(b, b.add(Add(), *((y, linear(b, x, 6)) if first else (linear(b, x, 6), y))), 3)


def gated(b: Builder) -> tuple[str, str]:
    """Numbers that go with all channels: made by a layer, constant for each place, and a single constant."""
    x = image(b)
    y = b.add(Mul(), conv(b, x, 1, 1), conv(b, x, 6))
    y = b.add(Mul(), b.const("places", numbers(8, 8, 1)), b.add(Add(), y, b.const("single", numbers(1))))
    return x, read_by_pixel(b, y)


def made(build: Callable[[Builder], tuple[str, str]]) -> Graph:
    b = Builder()
    x, y = build(b)
    return verify(b.graph([x], [y]))


def silenced(graph: Graph, found: Channels, removed: list[int]) -> Graph:
    """The graph whose layers read nothing of these channels."""
    tensors = dict(graph.tensors)
    for node in found.readers:
        weight = tensors[node.inputs[1]]
        assert weight.data is not None
        data = weight.data.copy()
        data.reshape(-1, found.count)[:, removed] = 0
        tensors[weight.name] = with_data(weight, data)
    return Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs)


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (perceptron, [12]),
        (flattened, [5]),
        (depthwise, [6, 4]),
        (residual, [6, 4]),
        (grouped, [5]),
        (partial(repeated, out=4), [5]),
        (partial(repeated, out=8), [4, 5]),
        (outer, [6]),
        (partial(outer, first=False), [6]),
        (gated, [6, 5]),
    ],
)
def test_what_is_left_computes_the_same(build: Callable[[Builder], tuple[str, str]], counts: list[int]) -> None:
    graph = made(build)
    sets = channels(graph)
    assert [c.count for c in sets] == counts
    x = [numbers(*graph[graph.inputs[0]].shape)]
    for found in sets:
        removed = [0, 2]
        small = drop_channels(graph, {found.name: removed})
        assert next(c for c in channels(small) if c.name == found.name).count == found.count - 2
        assert sum(t.count for t in small.constants()) < sum(t.count for t in graph.constants())
        (got,), (want,) = (interpret(g, x).values() for g in (small, silenced(graph, found, removed)))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        assert not np.allclose(got, next(iter(interpret(graph, x).values())), rtol=1e-5, atol=1e-5)


def wild(choose: np.random.Generator) -> Graph:
    """Dense layers, groups, channels that are repeated and operands of one number meet by chance."""
    b = Builder()
    x = image(b)
    made = [conv(b, x, 4), conv(b, x, 1)]
    for _ in range(8):
        x = str(choose.choice(made))
        t, last = b.tensors[x], int(choose.choice((4, 8)))
        width = t.shape[-1]
        kind = choose.integers(10)
        if kind < 2:
            made.append(conv(b, x, last if kind else 1, 1))
        elif kind < 4:
            made.append(conv(b, x, width, groups=width))
        elif kind == 4 and width % 2 == 0:
            made.append(conv(b, x, width // 2, groups=width // 2))
        elif kind < 7 and t.count % (8 * last) == 0:
            made.append(b.add(Reshape((1, 8, t.count // 8 // last, last)), x))
        elif kind == 7:
            many = last if width == 1 else width
            made.append(b.add(Mul(), x, b.const("factor", numbers(int(choose.choice((1, many, many)))))))
        else:
            fits = [n for n in made if _broadcasts(b.tensors[n].shape, t.shape)]
            made.append(b.add(Add(), x, str(choose.choice(fits))))
    unread = [n for n in made if not any(n in node.inputs for node in b.nodes)]
    return verify(b.graph(["x"], [b.add(Mean((1, 2), False), linear(b, n, 3)) for n in unread]))


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a, b, strict=True))


@pytest.mark.parametrize("seed", range(120))
def test_channels_that_go_wherever_they_may(seed: int) -> None:
    choose = np.random.default_rng(seed)
    graph = wild(choose)
    x = [numbers(*graph[graph.inputs[0]].shape)]
    removed, zeros = {}, graph
    for found in channels(graph):
        removed[found.name] = [int(n) for n in choose.permutation(found.count)[: choose.integers(1, found.count)]]
        zeros = silenced(zeros, found, removed[found.name])
    for got, want in zip(
        interpret(drop_channels(graph, removed), x).values(), interpret(zeros, x).values(), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * (1 + np.abs(want).max()))


def test_several_sets_at_once() -> None:
    graph = made(depthwise)
    first, second = channels(graph)
    small = drop_channels(graph, {first.name: [5], second.name: [0, 1]})
    assert [c.count for c in channels(small)] == [5, 2]


def test_what_leaves_the_model_or_is_unknown_stays_whole() -> None:
    """Outputs, permuted values and weights of two layers keep all channels."""

    def permuted(b: Builder) -> tuple[str, str]:
        x = image(b)
        y = b.add(Permute((0, 3, 1, 2)), conv(b, x, 4))
        return x, linear(b, b.add(Reshape((1, 256)), y), 3)

    def shared(b: Builder) -> tuple[str, str]:
        x = b.input("x", (1, 6), DType.FLOAT32)
        weight = b.const("weight", numbers(6, 6))
        return x, b.add(Linear(), b.add(Linear(), x, weight), weight)

    assert channels(made(permuted)) == ()
    assert channels(made(shared)) == ()
    assert channels(made(lambda b: (x := image(b), conv(b, x, 4)))) == ()


@pytest.mark.parametrize(
    ("removed", "what"),
    [
        ({"nobody": [0]}, "no channels of 'nobody' can be removed"),
        ({"linear": [12]}, "channels of 'linear' that are to be removed: 12"),
        ({"linear": list(range(12))}, "channels of 'linear' that are to be removed: all of them"),
    ],
)
def test_what_cannot_be_removed(removed: dict[str, list[int]], what: str) -> None:
    with pytest.raises(CompileError) as error:
        drop_channels(made(perceptron), removed)
    assert error.value.what == what


def attention(shared: bool = False, own_heads: bool = False) -> Graph:
    """Four heads of 6 for queries and keys and of 5 for values, of 7 places; the mask may be of each head's own."""
    b = Builder()
    x = b.input("x", (1, 7, 12), DType.FLOAT32)
    q, k, v = (linear(b, x, 4 * width) for width in (6, 6, 5))
    split = [b.add(Reshape((1, 7, 4, w)), y) for y, w in ((q, 6), (k, 6), (v, 5))]
    mask = b.const("mask", numbers(1, 4 if own_heads else 1, 7, 7))
    order = (0, 2, 1, 3)
    y = b.add(Attention(0.4, False, order, order, order, order), *split, mask)
    joined = b.add(Reshape((1, 7, 20)), y)
    out = b.add(Add(), x, linear(b, joined, 12))
    return b.graph([x], [out, joined] if shared else [out])


def test_what_is_given_out_keeps_its_shape() -> None:
    """If attention's result and inputs are outputs, or a layer's weight is, they keep their shapes."""
    graph = attention()
    node = next(n for n in graph.nodes if isinstance(n.op, Attention))
    for name in (node.inputs[0], node.outputs[0], graph.nodes[0].outputs[0]):
        assert not any(c.heads for c in channels(replace(graph, outputs=(*graph.outputs, name))))
    layers = made(perceptron)
    every = len(channels(layers))
    assert every and len(channels(replace(layers, outputs=(*layers.outputs, layers.nodes[0].inputs[1])))) < every


def test_nothing_along_the_last_axis() -> None:
    b = Builder()
    x = b.input("x", (1, 0), DType.FLOAT32)
    assert channels(b.graph([x], [b.add(Reshape((0, 4)), b.add(Add(), x, x))])) == ()


def test_heads_go_with_all_that_makes_them() -> None:
    """The result is as if the following layer read zeros for the removed heads."""
    graph = attention()
    (found,) = [c for c in channels(graph) if c.heads]
    assert (found.count, len(found.makers), len(found.readers)) == (4, 3, 1)
    small = verify(drop_channels(graph, {found.name: [0, 2]}))
    rows = [small[n.inputs[1]].shape for n in small.nodes if isinstance(n.op, Linear)]
    assert rows == [(12, 12), (12, 12), (10, 12), (12, 10)]
    assert sum(t.count for t in small.constants()) < 0.6 * sum(t.count for t in graph.constants())
    weight = graph[found.readers[0].inputs[1]]
    assert weight.data is not None
    zeros = weight.data.copy()
    zeros[:, found.columns_of(graph, [0, 2])] = 0
    tensors = {**graph.tensors, weight.name: with_data(weight, zeros)}
    x = numbers(1, 7, 12)
    (want,) = interpret(Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs), [x]).values()
    (got,) = interpret(small, [x]).values()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("graph", [attention(shared=True), attention(own_heads=True)])
def test_heads_that_others_know_stay(graph: Graph) -> None:
    assert not [c for c in channels(graph) if c.heads]


def test_a_name_that_several_layers_have() -> None:
    """Two functions of one module may give layers the same name, which does not say whose channels are meant."""
    b = Builder()
    x = b.input("x", (1, 6), DType.FLOAT32)
    inner = linear(b, x, 4)
    graph = b.graph([x], [linear(b, linear(b, inner, 5), 3)])
    same = {n: replace(t, origin=Origin("block")) for n, t in graph.tensors.items()}
    block = replace(graph, tensors=same)
    with pytest.raises(CompileError, match="channels of 'block' cannot be distinguished from others"):
        drop_channels(block, {"block": [0]})
    first, second = (c.makers[0].outputs[0] for c in channels(block))
    assert [drop_channels(block, {name: [0]})[name].shape for name in (first, second)] == [(1, 3), (1, 4)]

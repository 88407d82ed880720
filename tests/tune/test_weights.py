"""Weights that make up for channels that are left out, for rounding, and for ranges that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Array, Builder, DType, Graph, Node, interpret, with_data
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Sub
from baretorch.ops.int8.groups_of_inputs import round_in_groups
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import MaxPool2d
from baretorch.passes.prune import channels, drop_channels
from baretorch.quantize.observers import per_channel
from baretorch.quantize.watch import in_numpy
from baretorch.tune.refine import Grid, balance_channels, round_weights
from baretorch.tune.shrink import can_be_thin, find_moments, mask_of, removal_order, remove_channels, thin_weights

RNG = np.random.default_rng(3)


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def perceptron(first: Array) -> Graph:
    b = Builder()
    x = b.input("x", (1, first.shape[1]), DType.FLOAT32)
    h = b.add(Linear(lo=0.0), x, b.const("w1", first), b.const("b1", numbers(len(first))))
    return b.graph([x], [b.add(Linear(), h, b.const("w2", numbers(5, len(first))), b.const("b2", numbers(5)))])


def convolutions() -> Graph:
    b = Builder()
    x = b.input("x", (1, 8, 8, 2), DType.FLOAT32)
    pad = (1, 1, 1, 1)
    y = b.add(Conv2d(lo=0.0, padding=pad), x, b.const("w1", numbers(8, 3, 3, 2)), b.const("b1", numbers(8)))
    y = b.add(Conv2d(padding=pad, stride=(2, 2)), y, b.const("w2", numbers(6, 3, 3, 8)), b.const("b2", numbers(6)))
    y = b.add(Reshape((1, 24)), b.add(MaxPool2d((2, 2), (2, 2)), y))
    return b.graph([x], [b.add(Linear(), y, b.const("w3", numbers(3, 24)), b.const("b3", numbers(3)))])


def samples(graph: Graph, count: int) -> list[tuple[Array, ...]]:
    return [(numbers(*graph[graph.inputs[0]].shape),) for _ in range(count)]


def error(graph: Graph, other: Graph, inputs: Sequence[tuple[Array, ...]]) -> float:
    """Return the power of the difference between two results, divided by the power of the first."""
    wrong = power = 0.0
    for x in inputs:
        (want,), (got,) = (interpret(g, x).values() for g in (graph, other))
        wrong, power = wrong + float(np.square(want - got).sum()), power + float(np.square(want).sum())
    return wrong / power


def test_what_others_say_too_is_left_out_first() -> None:
    """Three channels are copies of others, however large they are: without them nothing is missed."""
    first = numbers(12, 6)
    first[9:] = 2 * first[:3]
    graph = perceptron(first)
    bias, second = graph["b1"].data, graph["w2"].data
    assert bias is not None and second is not None
    bias[:9], bias[9:] = 1, 2
    second[:] = np.sign(second)
    (found,) = channels(graph)
    moments = find_moments(graph, [found], samples(graph, 200), in_numpy)
    order = removal_order(graph, found, moments)
    assert sorted(order) == list(range(12))
    assert {n % 9 for n in order[:3]} == {0, 1, 2}
    small = remove_channels(graph, {found: order[:3]}, moments)
    assert error(graph, small, samples(graph, 50)) < 0.01
    assert error(graph, drop_channels(graph, {found.name: order[:3]}), samples(graph, 50)) > 0.05


def test_weights_make_up_for_channels() -> None:
    """The layers are a convolution with padding, and one whose channels a linear layer reads in several places."""
    graph = convolutions()
    sets = channels(graph)
    assert [c.count for c in sets] == [8, 6]
    moments = find_moments(graph, sets, samples(graph, 60), in_numpy)
    for found in sets:
        removed = removal_order(graph, found, moments)[:2]
        plain, made_up = drop_channels(graph, {found.name: removed}), remove_channels(graph, {found: removed}, moments)
        assert [t.type for t in plain.tensors.values()] == [t.type for t in made_up.tensors.values()]
        held_out = samples(graph, 30)
        assert error(graph, made_up, held_out) < 0.9 * error(graph, plain, held_out)


def nearest(graph: Graph, layers: Sequence[Node], bits: int) -> Graph:
    tensors = dict(graph.tensors)
    for node in layers:
        t = tensors[node.inputs[1]]
        assert t.data is not None
        scale = np.array(per_channel(t.data, bits).scale, np.float32).reshape(-1, *[1] * (t.data.ndim - 1))
        tensors[t.name] = type(t)(t.name, t.shape, t.dtype, data=np.rint(t.data / scale) * scale, origin=t.origin)
    return Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs)


def test_rounding_makes_up_for_itself() -> None:
    """Where inputs go together, errors of some weights can take back those of others; weights lie on the same grid."""
    mix = numbers(4, 16)
    graph = perceptron(numbers(24, 16))
    given = [((numbers(1, 4) @ mix + 0.1 * numbers(1, 16)).astype(np.float32),) for _ in range(150)]
    layers = [n for n in graph.nodes if n.inputs[1] == "w1"]
    plain, corrected = round_weights(graph, {layers[0].outputs[0]: Grid(3)}, given[:100], in_numpy)
    simple = nearest(graph, layers, 3)
    assert error(graph, plain, given[100:]) < 0.5 * error(graph, simple, given[100:])
    assert error(graph, corrected, given[100:]) < 0.5 * error(graph, simple, given[100:])
    again = nearest(plain, layers, 3)
    np.testing.assert_allclose(again["w1"].data, plain["w1"].data, atol=1e-6)  # type: ignore[arg-type]
    assert not np.array_equal(simple["w1"].data, plain["w1"].data)  # type: ignore[arg-type]


def test_rounding_knows_the_places_of_windows() -> None:
    """The products of a convolution's weights with what they are multiplied with are its answer."""
    graph = convolutions()
    plain, corrected = round_weights(graph, {n.outputs[0]: Grid(4) for n in graph.nodes}, samples(graph, 60), in_numpy)
    simple = nearest(graph, [n for n in graph.nodes if len(n.inputs) == 3], 4)
    held_out = samples(graph, 40)
    assert error(graph, plain, held_out) < error(graph, simple, held_out)
    assert corrected["b1"] is not graph["b1"]


def test_weights_that_stay_make_up_for_those_that_are_left_out() -> None:
    """Where inputs go together. As many fours are left as were asked for, and none else changes."""
    mix = numbers(4, 32)
    graph = perceptron(numbers(24, 32))
    given = [((numbers(1, 4) @ mix + 0.1 * numbers(1, 32)).astype(np.float32),) for _ in range(150)]
    layer = next(n for n in graph.nodes if n.inputs[1] == "w1")
    assert can_be_thin(graph, layer)
    thin = thin_weights(graph, {layer.outputs[0]: 0.25}, given[:100], in_numpy)
    before, after = graph["w1"].data, thin["w1"].data
    assert before is not None and after is not None
    assert int(after.reshape(-1, 4).any(axis=1).sum()) == 24 * 8 // 4
    np.testing.assert_array_equal(mask_of(thin, layer), np.repeat(after.reshape(-1, 4).any(axis=1), 4).reshape(24, 32))
    plain = {**graph.tensors, "w1": with_data(graph["w1"], before * mask_of(thin, layer))}
    assert error(graph, thin, given[100:]) < 0.5 * error(graph, replace(graph, tensors=plain), given[100:])
    assert thin["w2"] is graph["w2"]


def test_balanced_channels_change_nothing_in_float() -> None:
    graph = convolutions()
    weight = graph["w1"].data
    assert weight is not None
    weight[0] *= 50
    given = samples(graph, 10)
    even = balance_channels(graph, given, in_numpy)
    assert error(graph, even, given) < 1e-9
    ranges = [np.abs(g["w1"].data).reshape(8, -1).max(axis=1) for g in (graph, even)]  # type: ignore[arg-type]
    assert ranges[1].max() / ranges[1].min() < 0.5 * ranges[0].max() / ranges[0].min()


def test_the_head_that_is_missed_least_goes_first() -> None:
    """One of four heads contributes almost nothing to the result, and one repeats another."""
    b = Builder()
    x = b.input("x", (1, 6, 8), DType.FLOAT32)
    weights = [numbers(16, 8) for _ in range(3)]
    for weight in weights:
        weight[4:8] = weight[:4]  # the second head is the first again
    made = [b.add(Linear(), x, b.const(f"w{i}", w), b.const(f"b{i}", numbers(16) * 0)) for i, w in enumerate(weights)]
    order = (0, 2, 1, 3)
    split = [b.add(Reshape((1, 6, 4, 4)), y) for y in made]
    y = b.add(Reshape((1, 6, 16)), b.add(Attention(0.5, False, order, order, order, order), *split))
    last = numbers(8, 16)
    last[:, 12:] *= 1e-3
    graph = b.graph([x], [b.add(Linear(), y, b.const("w", last), b.const("b", numbers(8)))])
    (found,) = [c for c in channels(graph) if c.heads]
    moments = find_moments(graph, [found], samples(graph, 60), in_numpy)
    removed = removal_order(graph, found, moments)
    assert removed[0] == 3 and removed[1] in (0, 1)
    small = remove_channels(graph, {found: removed[:2]}, moments)
    held_out = samples(graph, 20)
    assert (
        error(graph, small, held_out) < 0.01 < error(graph, drop_channels(graph, {found.name: removed[:2]}), held_out)
    )


def test_rounding_in_groups_is_kept_by_the_image() -> None:
    """Weights lie where int4g32 would round them to; the errors of a small group are as small."""
    mix = numbers(4, 70)
    first = numbers(24, 70)
    first[:, 32:64] /= 16
    graph = perceptron(first)
    given = [((numbers(1, 4) @ mix + 0.1 * numbers(1, 70)).astype(np.float32),) for _ in range(150)]
    (y,) = [n.outputs[0] for n in graph.nodes if n.inputs[1] == "w1"]
    made = round_weights(graph, {y: Grid(4, 32)}, given[:100], in_numpy)[0]
    weight = made["w1"].data
    assert weight is not None
    scales = np.array(per_channel(weight, 4, 32).scale)
    stored = (round_in_groups(weight.astype(np.float64), scales) * scales[:, None]).astype(np.float32)
    np.testing.assert_array_equal(stored, weight)
    scales = np.array(per_channel(first, 4, 32).scale)
    plain = round_in_groups(first.astype(np.float64), scales) * scales[:, None]
    simple = replace(graph, tensors={**graph.tensors, "w1": with_data(graph["w1"], plain)})
    assert error(graph, made, given[100:]) < 0.5 * error(graph, simple, given[100:])


def test_channels_are_balanced_only_where_that_changes_nothing() -> None:
    """1 - x does not go with a factor, on whichever side the 1 stands."""
    for swapped in (False, True):
        b = Builder()
        x = b.input("x", (1, 4), DType.FLOAT32)
        y = b.add(Linear(), x, b.const("w1", numbers(6, 4) * np.arange(1, 7, dtype=np.float32)[:, None]))
        one = b.const("one", np.ones(1, np.float32))
        y = b.add(Sub(), *((y, one) if swapped else (one, y)))
        graph = b.graph([x], [b.add(Linear(), y, b.const("w2", numbers(3, 6)))])
        assert [c.count for c in channels(graph)] == [6]
        given = samples(graph, 10)
        assert error(graph, balance_channels(graph, given, in_numpy), given) < 1e-9

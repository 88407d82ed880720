"""to_int8: which operators become int8, and that what they compute is what the notes say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from baretorch.ir import Array, Builder, DType, Graph, Op, Quant, Shape, interpret, verify
from baretorch.ops.activations import Gelu, Hardswish
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Div, Maximum, Mul, Sub
from baretorch.ops.functions import Sigmoid, Tanh
from baretorch.ops.layout import Flip, Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Slice
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import LogSoftmax, Softmax
from baretorch.ops.upsample import UpsampleNearest2d
from baretorch.passes.to_int8 import float_layers, to_int8

A, B = Quant((0.03,), (-5,)), Quant((0.02,), (9,))
Y, HALF = Quant((0.05,), (3,)), Quant((1 / 256,), (-128,))
IMAGE = (1, 6, 8, 4)


def noted(b: Builder, name: str, quant: Quant | None) -> str:
    b.tensors[name] = replace(b.tensors[name], quant=quant)
    return name


def one(op: Op, shapes: tuple[Shape, ...], quants: tuple[Quant, ...], out: Quant | None) -> Graph:
    """A graph of this operator alone, with notes on its tensors."""
    b = Builder()
    names = [b.input(f"x{i}", s, DType.FLOAT32, q) for i, (s, q) in enumerate(zip(shapes, quants, strict=True))]
    return verify(b.graph(names, [noted(b, b.add(op, *names, name="y"), out)]))


def rounded(x: Array, quant: Quant) -> Array:
    return (
        (np.clip(np.rint(x / quant.scale[0]) + quant.zero_point[0], -128, 127)) - quant.zero_point[0]
    ) * quant.scale[0]


def inner(graph: Graph) -> list[str]:
    """The operators but for those at the edges."""
    return [n.op.name for n in graph.nodes if not isinstance(n.op, (Quantize, Dequantize))]


def in_float(graph: Graph) -> list[str]:
    """The operators of a graph without any int8."""
    assert all(t.dtype is DType.FLOAT32 for t in verify(graph).tensors.values())
    return inner(graph)


def compare(graph: Graph, out: Quant) -> list[str]:
    """The pass changes the result by a step at most. Gives the operators after it."""
    after = verify(to_int8(graph))
    rng = np.random.default_rng(0)
    for spread in (0.5, 1.5):
        xs = [(rng.standard_normal(graph[n].shape) * spread).astype(np.float32) for n in graph.inputs]
        quants = [graph[n].quant for n in graph.inputs]
        fed = [rounded(x, q).astype(np.float32) for x, q in zip(xs, quants, strict=True) if q is not None]
        (want,), (got,) = interpret(graph, fed).values(), interpret(after, fed).values()
        assert np.abs(got - rounded(want, out)).max() <= out.scale[0] * 1.001
    assert not float_layers(after)
    return inner(after)


@pytest.mark.parametrize(
    "op, shapes, after",
    [
        (Add(), (IMAGE, IMAGE), "qadd"),
        (Add(lo=0.0), (IMAGE, (4,)), "qadd"),
        (Sub(lo=-1.0, hi=1.5), (IMAGE, IMAGE), "qadd"),
        (Mul(), (IMAGE, (1, 1, 1, 4)), "qmul"),
    ],
)
def test_arithmetic(op: Op, shapes: tuple[Shape, ...], after: str) -> None:
    assert compare(one(op, shapes, (A, B), Y), Y) == [after]


@pytest.mark.parametrize("op", [Clamp(0.0, inf), Tanh(), Hardswish(), Gelu(), Sigmoid()])
def test_functions_are_tables(op: Op) -> None:
    assert compare(one(op, (IMAGE,), (A,), Y), Y) == ["lookup"]


@pytest.mark.parametrize("op", [Add(), Sub(), Mul(), Div(), Maximum()])
def test_with_one_number_they_are_tables_too(op: Op) -> None:
    b = Builder()
    x, c = b.input("x", IMAGE, DType.FLOAT32, A), b.const("c", np.array([1.5], np.float32))
    assert compare(verify(b.graph([x], [noted(b, b.add(op, x, c, name="y"), Y)])), Y) == ["lookup"]


@pytest.mark.parametrize(
    "op, after",
    [
        (AvgPool2d((2, 2), (2, 2)), ["qavg_pool2d"]),
        (AvgPool2d((3, 3), (1, 1), (1, 1, 1, 1)), ["qavg_pool2d"]),
        (AvgPool2d((3, 3), (1, 1), divisor=4), ["qavg_pool2d"]),
        (AvgPool2d((6, 8), (6, 8)), ["reshape", "qavg_pool2d", "reshape"]),
        (Mean((1, 2), True), ["reshape", "qavg_pool2d", "reshape"]),
        (Mean((3,), False), ["reshape", "qavg_pool2d", "reshape"]),
    ],
)
def test_averages(op: Op, after: list[str]) -> None:
    assert compare(one(op, (IMAGE,), (A,), Y), Y) == after


def test_softmax() -> None:
    assert compare(one(Softmax(1), ((2, 12),), (A,), HALF), HALF) == ["qsoftmax"]
    other = Quant((0.01,), (-100,))
    assert compare(one(Softmax(1), ((2, 12),), (A,), other), other) == ["qsoftmax", "lookup"]
    assert compare(one(Softmax(1), (IMAGE,), (A,), HALF), HALF) == ["permute", "qsoftmax", "permute"]


@pytest.mark.parametrize(
    "op",
    [
        AvgPool2d((3, 3), (1, 1), (1, 1, 1, 1), count_include_pad=False),
        AvgPool2d((4, 4), (3, 3), ceil_mode=True),
        Mean((1, 3), False),
        MaxPool2d((2, 2), (1, 1), dilation=(2, 2)),
        LogSoftmax(3),
    ],
)
def test_what_has_no_int8_form_stays_float(op: Op) -> None:
    assert in_float(to_int8(one(op, (IMAGE,), (A,), A))) == [op.name]


def test_a_sum_that_would_lose_precision_stays_float() -> None:
    graph = one(Add(), (IMAGE, IMAGE), (A, A), Quant((0.0001,), (0,)))
    assert in_float(to_int8(graph)) == ["add"]


@pytest.mark.parametrize("out", [A, None], ids=["noted", "not noted"])
@pytest.mark.parametrize(
    "op",
    [
        MaxPool2d((2, 2), (2, 2), (1, 1, 0, 0)),
        Permute((0, 3, 1, 2)),
        Reshape((48, 4)),
        Slice(2, 1, 7, 2),
        Flip((1,)),
        Pad(((0, 0), (1, 2), (0, 0), (0, 0)), 0.0),
        UpsampleNearest2d((12, 16), (0.5, 0.5)),
    ],
)
def test_moves_change_nothing(op: Op, out: Quant | None) -> None:
    graph = one(op, (IMAGE,), (A,), out)
    after = verify(to_int8(graph))
    assert inner(after) == [op.name] and after[after.nodes[1].outputs[0]].dtype is DType.INT8
    x = rounded(np.random.default_rng(0).standard_normal(IMAGE), A).astype(np.float32)
    np.testing.assert_allclose(interpret(after, [x])["y"], interpret(graph, [x])["y"], atol=1e-6)


def test_a_number_that_no_scale_holds_keeps_a_pad_float() -> None:
    pad = Pad(((0, 0), (1, 2), (0, 0), (0, 0)), 100.0)
    after = verify(to_int8(one(pad, (IMAGE,), (A,), None)))
    assert after["y"].dtype is DType.FLOAT32 and inner(after) == ["pad"]
    assert interpret(after, [np.zeros(IMAGE, np.float32)])["y"].max() == 100.0


def test_cat_brings_its_inputs_to_one_scale() -> None:
    assert compare(one(Cat(3), (IMAGE, IMAGE), (A, A), A), A) == ["cat"]
    assert compare(one(Cat(3), (IMAGE, IMAGE), (A, B), A), A) == ["lookup", "cat"]
    assert compare(one(Cat(3), (IMAGE, IMAGE), (A, B), Y), Y) == ["lookup", "lookup", "cat"]


def layer(op: Op, shape: Shape) -> Callable[[Builder, str], str]:
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, shape).astype(np.float32) * np.float32(0.01)
    bias = rng.standard_normal(shape[0]).astype(np.float32)
    scales = Quant((float(np.float32(0.01)),) * shape[0], (0,) * shape[0], 0)
    return lambda b, x: b.add(op, x, b.const("weight", weight, scales), b.const("bias", bias), name="y")


@pytest.mark.parametrize(
    "made, after",
    [
        (layer(Linear(), (5, 4)), "qlinear"),
        (layer(Linear(lo=0.0), (5, 4)), "qlinear"),
        (layer(Conv2d(padding=(1, 1, 1, 1)), (5, 3, 3, 4)), "qconv2d"),
    ],
)
def test_layers(made: Callable[[Builder, str], str], after: str) -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    out = Quant((0.2,), (-10,))
    assert compare(verify(b.graph([x], [noted(b, made(b, x), out)])), out) == [after]


def test_without_notes_nothing_changes() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32)
    graph = b.graph([x], [b.add(Tanh(), x)])
    assert to_int8(graph) is graph and float_layers(graph) == []


def test_an_unnoted_tensor_between_stays_float() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    t = b.add(Tanh(), x, name="t")
    graph = verify(b.graph([x], [noted(b, b.add(Add(), t, t, name="y"), Y)]))
    assert in_float(to_int8(graph)) == ["tanh", "add"]


def test_float_layers_are_named() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    t = noted(b, b.add(Tanh(), x, name="t"), B)
    after = verify(to_int8(verify(b.graph([x], [noted(b, b.add(Mean((1, 3), False), t, name="y"), Y)]))))
    assert inner(after) == ["lookup", "mean"] and float_layers(after) == ["mean"]

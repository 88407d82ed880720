"""to_int8: which operators become int8, and that what they compute is what the notes say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Quant, Shape, interpret
from baretorch.ir.verify import verify
from baretorch.ops.activations import Gelu, Hardswish
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Clamp, Div, Maximum, Mul, Sub
from baretorch.ops.fft import Magnitude, Rfft
from baretorch.ops.functions import Log, Sigmoid, Tanh
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.layout import Flip, Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.logic import Lt, Where
from baretorch.ops.matmul import Matmul
from baretorch.ops.move import Cat, Slice
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Amax, Mean, Sum
from baretorch.ops.scan import CumSum
from baretorch.ops.softmax import LogSoftmax, Softmax
from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d
from baretorch.passes.note_scales import note_scales
from baretorch.passes.to_int8 import SPECTRA, could_be_int8, explain_float, float_layers, to_int8

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
        (Div(lo=-1.0, hi=1.5), (IMAGE, IMAGE), "qdiv"),
    ],
)
def test_arithmetic(op: Op, shapes: tuple[Shape, ...], after: str) -> None:
    assert compare(one(op, shapes, (A, B), Y), Y) == [after]


def test_a_graph_may_take_and_give_int8() -> None:
    """Values that are int8 at both ends, and in between, are moved unchanged; a change of scale is a table."""
    b = Builder()
    x = b.input("x", (2, 6), DType.INT8, A)
    real = b.add(Dequantize(A.scale[0], A.zero_point[0]), x)
    b.tensors[real] = replace(b.tensors[real], quant=A)
    turned = b.add(Reshape((3, 4)), real)
    same, other = (b.add(Quantize(q.scale[0], q.zero_point[0]), turned) for q in (A, Y))
    graph = to_int8(note_scales(b.graph([x], [same, other])))
    assert [n.op.name for n in graph.nodes] == ["reshape", "lookup"]
    assert [(t.dtype, t.quant) for t in graph.of(graph.outputs)] == [(DType.INT8, A), (DType.INT8, Y)]
    stored = np.arange(-6, 6, dtype=np.int8).reshape(2, 6)
    want = interpret(b.graph([x], [same, other]), [stored])
    have = interpret(graph, [stored])
    assert all(np.array_equal(h, w) for h, w in zip(have.values(), want.values(), strict=True))


def test_the_square_of_a_difference_is_rounded_once() -> None:
    b = Builder()
    x, mean = (b.input(n, s, DType.FLOAT32, q) for n, s, q in (("x", (3, 8), A), ("mean", (3, 1), B)))
    apart = b.add(Sub(), x, mean)
    y = b.add(Mul(), apart, apart)
    b.tensors[y] = replace(b.tensors[y], quant=Quant((0.3,), (-128,)))
    graph = to_int8(b.graph([x, mean], [y]))
    assert [n.op.name for n in graph.nodes if n.op.computes] == ["qsquared_difference"]


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
        (Mean((1, 3), False), ["permute", "reshape", "qavg_pool2d", "reshape"]),
        (Sum((2,), True), ["reshape", "qavg_pool2d", "reshape"]),
        (AvgPool2d((3, 3), (1, 1), (1, 1, 1, 1), count_include_pad=False), ["qavg_windows"]),
        (AvgPool2d((4, 4), (3, 3), ceil_mode=True), ["qavg_windows"]),
        (AdaptiveAvgPool2d((4, 5)), ["qavg_windows"]),
        (LayerNorm((3,), 1e-5), ["reshape", "qnorm", "reshape"]),
        (LayerNorm((1,), 1e-5), ["permute", "reshape", "qnorm", "reshape", "permute"]),
        (LayerNorm((2, 3), 1e-5, centred=False), ["reshape", "qnorm", "reshape"]),
        (GroupNorm(2, 1e-5, 3), ["reshape", "qnorm", "reshape"]),
        (GroupNorm(3, 1e-5, 1), ["permute", "reshape", "qnorm", "reshape", "permute"]),
    ],
)
def test_averages_and_norms(op: Op, after: list[str]) -> None:
    assert compare(with_affine(op), Y) == after


def with_affine(op: Op) -> Graph:
    """Return a node like `one`, with weights and biases for a norm."""
    if not isinstance(op, (LayerNorm, GroupNorm)):
        return one(op, (IMAGE,), (A,), Y)
    places = tuple(IMAGE[a] for a in op.axes) if isinstance(op, LayerNorm) else (IMAGE[op.axis],)
    rng = np.random.default_rng(2)
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    affine = (b.const(name, rng.standard_normal(places).astype(np.float32)) for name in ("weight", "bias"))
    return verify(b.graph([x], [noted(b, b.add(op, x, *affine, name="y"), Y)]))


def test_softmax() -> None:
    logs = Quant((0.02,), (100,))
    assert compare(one(LogSoftmax(1), ((2, 12),), (A,), logs), logs) == ["qlog_softmax"]
    assert compare(one(Softmax(1), ((2, 12),), (A,), HALF), HALF) == ["qsoftmax"]
    other = Quant((0.01,), (-100,))
    assert compare(one(Softmax(1), ((2, 12),), (A,), other), other) == ["qsoftmax", "lookup"]
    assert compare(one(Softmax(1), (IMAGE,), (A,), HALF), HALF) == ["permute", "qsoftmax", "permute"]


@pytest.mark.parametrize(
    "op, why",
    [
        (MaxPool2d((2, 2), (1, 1), dilation=(2, 2)), "a max pool with dilation has no int8 form"),
        (CumSum(1), "cumsum has no int8 form"),
        (AvgPool2d((1, 1), (7, 1), (1, 1, 0, 0), count_include_pad=False), "a window is completely in its padding"),
    ],
)
def test_what_has_no_int8_form_stays_float(op: Op, why: str) -> None:
    graph = to_int8(one(op, (IMAGE,), (A,), A))
    assert in_float(graph) == [op.name] == float_layers(graph) and [w for _, w in explain_float(graph)] == [why]
    (x,) = graph.inputs
    forgetful = replace(graph, tensors={**graph.tensors, x: replace(graph[x], quant=None)})
    assert [w for _, w in explain_float(forgetful)] == [why]  # it was noted, not found out again


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


@pytest.mark.parametrize(
    "op, after",
    [
        (UpsampleBilinear2d((12, 16), (0.5, 0.5)), ["qupsample_bilinear2d"]),
        (AdaptiveMaxPool2d((4, 5)), ["qmax_windows"]),
        (Amax((1, 2), True), ["reshape", "max_pool2d", "reshape"]),
    ],
)
def test_the_scale_stays(op: Op, after: list[str]) -> None:
    assert compare(one(op, (IMAGE,), (A,), A), A) == after


@pytest.mark.parametrize("op", [Matmul(), Matmul(lo=0.0), Matmul(a_dims=(0, 2, 1), b_dims=(0, 2, 1))])
def test_products_of_matrices(op: Matmul) -> None:
    shapes = ((2, 7, 5), (2, 6, 7)) if op.a_dims else ((2, 5, 7), (2, 7, 6))
    assert compare(one(op, shapes, (A, B), Y), Y) == ["qmatmul"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_attention(mask: str | None, causal: bool) -> None:
    b = Builder()
    qkv = [b.input(name, (2, 6, 8), DType.FLOAT32, quant) for name, quant in zip("qkv", (A, B, A), strict=True)]
    seen = np.random.default_rng(4).random((6, 6)) < 0.7
    masks = {"bool": seen, "float32": np.where(seen, 0.3, -np.inf).astype(np.float32)}
    extra = [] if mask is None else [b.const("mask", masks[mask])]
    out = Quant((0.02,), (3,))
    y = noted(b, b.add(Attention(0.35, causal), *qkv, *extra, name="y"), out)
    assert compare(verify(b.graph(qkv, [y])), out) == ["qattention"]


def test_a_mask_that_is_computed_in_float_becomes_steps() -> None:
    b = Builder()
    qkv = [b.input(name, (2, 6, 8), DType.FLOAT32, A) for name in "qkv"]
    mask = b.input("mask", (6, 6), DType.FLOAT32)
    graph = verify(b.graph([*qkv, mask], [noted(b, b.add(Attention(0.35), *qkv, mask, name="y"), A)]))
    after = verify(to_int8(graph))
    assert inner(after) == ["mul", "to_fixed", "qattention"] and float_layers(after) == []
    rng = np.random.default_rng(0)
    fed = [rounded(rng.standard_normal((2, 6, 8)), A).astype(np.float32) for _ in qkv]
    given = np.where(rng.random((6, 6)) < 0.3, -np.inf, rng.standard_normal((6, 6))).astype(np.float32)
    (want,), (got,) = (interpret(g, [*fed, given]).values() for g in (graph, after))
    assert np.abs(got - rounded(want, A)).max() <= A.scale[0] * 1.001


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
        (layer(Conv2d(padding=(1, 1, 1, 1)), (5, 3, 3, 4)), "qconv2d"),
        (layer(ConvTranspose2d((2, 2), (1, 0, 1, 0), lo=0.0), (5, 3, 3, 4)), "qconv_transpose2d"),
    ],
)
def test_layers(made: Callable[[Builder, str], str], after: str) -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    out = Quant((0.2,), (-10,))
    assert compare(verify(b.graph([x], [noted(b, made(b, x), out)])), out) == after.split()


def test_a_linear_layer_of_few_rows() -> None:
    b = Builder()
    x = b.input("x", (2, 4), DType.FLOAT32, A)
    out = Quant((0.2,), (-10,))
    y = noted(b, layer(Linear(lo=0.0), (5, 4))(b, x), out)
    assert compare(verify(b.graph([x], [y])), out) == ["qlinear"]


def test_without_notes_nothing_changes() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32)
    graph = b.graph([x], [b.add(Tanh(), x)])
    assert to_int8(graph) is graph and float_layers(graph) == []


def test_an_unnoted_tensor_between_stays_float() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    t = b.add(CumSum(1), x, name="t")
    graph = verify(b.graph([x], [noted(b, b.add(Add(), t, t, name="y"), Y)]))
    assert in_float(to_int8(graph)) == ["cumsum", "add"]


def test_what_depends_on_one_tensor_is_one_table() -> None:
    b = Builder()
    x, limit = b.input("x", IMAGE, DType.FLOAT32, A), b.const("limit", np.array(0.5, np.float32))
    t = b.add(Tanh(), x, name="t")
    small = b.add(Lt(), b.add(Mul(), t, t), limit)
    out = b.add(Where(), small, x, t, name="y")
    assert compare(verify(b.graph([x], [noted(b, out, Y)])), Y) == ["lookup"]


def test_a_function_without_a_note_gets_the_scale_of_its_table() -> None:
    b = Builder()
    x, z = b.input("x", IMAGE, DType.FLOAT32, A), b.input("z", IMAGE, DType.FLOAT32, B)
    out = b.add(Mul(), z, b.add(Sigmoid(), x), name="y")
    assert compare(verify(b.graph([x, z], [noted(b, out, Y)])), Y) == ["lookup", "qmul"]


def test_comparisons_need_no_float() -> None:
    b = Builder()
    x, z = b.input("x", IMAGE, DType.FLOAT32, A), b.input("z", IMAGE, DType.FLOAT32, A)
    half = b.const("half", np.array(0.5, np.float32))
    few = b.add(Where(), b.add(Lt(), x, z), x, z)
    out = b.add(Where(), b.add(Lt(), x, half), few, z, name="y")
    after = compare(verify(b.graph([x, z], [noted(b, out, A)])), A)
    assert after == ["lt", "where", "lookup", "cast", "where"]


def test_a_factor_and_a_summand_per_channel_are_a_depthwise_layer() -> None:
    for shape, axis in (((4,), 3), ((6, 1, 1), 1)):
        rng = np.random.default_rng(3)
        b = Builder()
        x = b.input("x", IMAGE, DType.FLOAT32, A)
        factor, summand = (b.const(name, rng.standard_normal(shape).astype(np.float32)) for name in ("by", "plus"))
        out = b.add(Add(), b.add(Mul(), x, factor), summand, name="y")
        moves = [] if axis == 3 else ["permute"]
        after = compare(verify(b.graph([x], [noted(b, out, Y)])), Y)
        assert after == [*moves, "reshape", "qconv2d", "reshape", *moves]


def test_float_layers_are_named() -> None:
    b = Builder()
    x = b.input("x", IMAGE, DType.FLOAT32, A)
    t = noted(b, b.add(Tanh(), x, name="t"), B)
    after = verify(to_int8(verify(b.graph([x], [noted(b, b.add(CumSum(1), t, name="y"), Y)]))))
    assert inner(after) == ["lookup", "cumsum"] and float_layers(after) == ["cumsum"]
    assert [w for _, w in explain_float(after)] == ["cumsum has no int8 form"]


def test_what_stays_float_around_a_spectrum_is_reported_in_one_line() -> None:
    """Up to the logarithm; what follows has reasons of its own."""
    b = Builder()
    x, floor = b.input("x", (3, 16), DType.FLOAT32), b.const("floor", np.array([1e-6], np.float32))
    power = b.add(Magnitude(), b.add(Rfft(), b.add(Tanh(), x)))
    logs = b.add(Log(), b.add(Add(), power, floor), name="logs")
    sums = noted(b, b.add(CumSum(1), logs, name="sums"), A)
    y = b.add(Tanh(), b.add(Sigmoid(), sums, name="s"), name="y")
    after = verify(to_int8(verify(b.graph([x], [y]))))
    around, *others = explain_float(after)
    assert around == ("tanh, rfft, magnitude, add, log", SPECTRA)
    assert others[0] == ("cumsum", "cumsum has no int8 form")
    assert could_be_int8(after) == ["sigmoid", "tanh"]

"""Graphs written as TOSA keep their meaning: Arm's reference model computes the same as our references, to the last
bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Quant, Shape
from baretorch.npu import reference
from baretorch.npu.region import NotTaken, RegionValues
from baretorch.npu.softmax import LONGEST_ROW, Rows
from baretorch.npu.to_tosa import TOSA_ROWS, why_not, write_node, write_region
from baretorch.npu.tosa import Operator, TosaKind
from baretorch.ops.int8.qbinary import sum_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.layout import Expand, Reshape
from baretorch.ops.move import Cat
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.upsample import UpsampleNearest2d
from tests.ops.case import Case, run_reference
from tests.ops.cases import TABLE

A, B, Y = Quant((0.1,), (3,)), Quant((0.07,), (-5,)), Quant((0.13,), (1,))


def _summed(sign: int, a: Shape, b: Shape, unknown: bool = False) -> Graph:
    """Return a model with a sum. With `unknown`, b has no scale, like a constant."""
    g = Builder(f"sum {sign} {a} {b}{' unknown' if unknown else ''}")
    op = sum_of(A, B, Y, sign)
    assert op is not None
    y = g.add(replace(op, lo=-100), g.input("a", a, DType.INT8, A), g.input("b", b, DType.INT8, None if unknown else B))
    g.tensors[y] = replace(g.tensors[y], quant=Y)
    return g.graph(("a", "b"), (y,))


def _moved(op: Op, *shapes: Shape) -> Graph:
    g = Builder(f"{op} {shapes}")
    inputs = [g.input(f"x{i}", shape, DType.INT8) for i, shape in enumerate(shapes)]
    return g.graph(inputs, (g.add(op, *inputs),))


OWN = [
    _summed(1, (1, 4, 5, 8), (1, 4, 5, 8)),
    _summed(-1, (2, 3, 8), (8,)),
    _summed(1, (1, 4, 1, 8), (1, 1, 5, 1)),
    _summed(-1, (2, 3, 8), (3, 1), unknown=True),
    _moved(Cat(3), (1, 2, 3, 4), (1, 2, 3, 7), (1, 2, 3, 1)),
    _moved(Reshape((2, 12)), (1, 2, 3, 4)),
    _moved(Expand((5, 2, 4)), (1, 4)),
    _moved(UpsampleNearest2d((6, 12), (0.5, 1 / 3)), (2, 3, 4, 5)),
]


def _taken(case: Case) -> bool:
    if type(case.op) not in TOSA_ROWS:
        return False
    graph = case.graph()
    return why_not(graph, graph.nodes[0]) is None


@pytest.fixture(scope="module")
def graphs() -> dict[str, tuple[Graph, list[Array], Array]]:
    """Each with inputs, and what our references answer."""
    found = {}
    cases = [case for case in TABLE if _taken(case)]
    for case, outputs in zip(cases, run_reference(cases), strict=True):
        graph = case.graph()
        found[case.name] = (graph, list(case.arrays()[: len(graph.inputs)]), outputs[0])
    lot = np.random.default_rng(17)
    for graph in OWN:
        arrays = [lot.integers(-128, 128, t.shape).astype(np.int8) for t in graph.of(graph.inputs)]
        found[graph.name] = (graph, arrays, graph.nodes[0].op.reference(*arrays)[0])
    return found


def test_the_reference_model_answers_as_ours_does(graphs: dict[str, tuple[Graph, list[Array], Array]]) -> None:
    """One file holds all cases, so that the model is started once."""
    whole = RegionValues(Builder().graph((), ()))
    inputs: dict[str, Array] = {}
    wanted: dict[str, tuple[str, Array]] = {}
    for name, (graph, arrays, answer) in graphs.items():
        region = RegionValues(graph, whole.block)
        for t, x in zip(graph.of(graph.inputs), arrays, strict=True):
            region.values[t.name] = whole.block.input(t.shape, TosaKind.INT8)
            inputs[region.values[t.name].name] = x
        write_node(region, graph.nodes[0])
        made = region.values[graph.outputs[0]].name
        if made not in inputs:  # else it changes nothing
            whole.block.outputs.append(made)
            wanted[made] = (name, answer)
    assert len(wanted) > 120, sorted(graphs)
    got = reference.run(whole.block.file(), inputs, list(wanted))
    wrong = [
        f"{name}: {(y != answer).sum()} of {y.size}"
        for y, (name, answer) in zip(got, wanted.values(), strict=True)
        if y.shape != answer.shape or (y != answer).any()
    ]
    assert not wrong


def test_every_row_has_a_case(graphs: dict[str, tuple[Graph, list[Array], Array]]) -> None:
    assert {type(graph.nodes[0].op) for graph, _, _ in graphs.values()} == set(TOSA_ROWS)


NEITHER = "TOSA's transposed convolution has neither groups nor dilation"
REFUSED = {
    "qconv_transpose2d dilated": NEITHER,
    "qconv_transpose2d stride and dilation alike": NEITHER,
    "qconv_transpose2d groups": NEITHER,
    "qconv_transpose2d depthwise": NEITHER,
    "qconv_transpose2d nothing behind, depthwise": NEITHER,
    "qconv_transpose2d nothing between, depthwise": NEITHER,
    "qconv_transpose2d all of an input cut off, dense": NEITHER,
    "qconv_transpose2d all of an input cut off, depthwise": NEITHER,
    "qmatmul repeated": "its operands have different batches",
}


def test_a_refusal_has_a_reason() -> None:
    refused = {}
    for case in TABLE:
        if type(case.op) in TOSA_ROWS:
            graph = case.graph()
            why = why_not(graph, graph.nodes[0])
            if why is not None:
                refused[case.name] = why
    nothing = {name for name, why in refused.items() if why == "its windows see nothing but padding"}
    large = {name for name, why in refused.items() if why == "its padding is not smaller than its windows"}
    assert nothing and all("padding before" in name for name in nothing)
    assert large == {f"max_pool2d int8 padding {side}, {n}" for side in ("before", "around") for n in (3, 9)}
    refused = {name: why for name, why in refused.items() if name not in nothing | large}
    assert refused.pop("pad float32 image") == "it is float32"
    assert refused.pop("slice bool (3, 5) axis 1 1:4:1") == "it is bool"
    assert {name: why for name, why in refused.items() if not why.startswith("it is ")} == REFUSED


def test_sums_that_tosa_does_not_scale_are_refused() -> None:
    """They were an error of the reference model if tosa-tools was installed, else a guess."""
    g = Builder("far")
    weight, bias, multiplier = np.full((2, 1, 1, 3), 100, np.int8), np.array([38400, 38397]), np.full(2, 1 << 30)
    names = [g.const("weight", weight), g.const("bias", bias.astype(np.int32))]
    names.append(g.const("multiplier", multiplier.astype(np.int32)))
    x = g.input("x", (1, 4, 4, 3), DType.INT8)
    near, far = (g.add(QConv2d(-128, 0, shift, -128, 127), x, *names) for shift in (14, 15))
    graph = g.graph((x,), (near, far))
    whys = [why_not(graph, node) for node in graph.nodes]
    assert whys == [None, "its sums reach 76,503; for a factor like its TOSA says what comes of those below 65,536"]


def test_windows_that_see_nothing_are_refused() -> None:
    g = Builder("nothing")
    x = g.input("x", (1, 1, 5, 4), DType.INT8)
    graph = g.graph((x,), (g.add(QAvgPool2d((1, 1), (4, 1), 3, 1 << 30, 0, 5, (1, 1, 0, 0)), x),))
    assert why_not(graph, graph.nodes[0]) == "its windows see nothing but padding"


def test_an_image_is_cut_once() -> None:
    """Rows and columns that no window reaches: of two slices Vela copies the first, and 5.2.0 lets a convolution that
    reads the second begin before the copy ends."""
    g = Builder("strides")
    y = g.add(MaxPool2d((1, 1), (2, 3)), g.input("x", (1, 8, 8, 4), DType.INT8))
    rows = write_region(g.graph(("x",), (y,))).block.rows
    assert [row.operator for row in rows if row.operator is not Operator.CONST_SHAPE] == [
        Operator.SLICE,
        Operator.MAX_POOL2D,
    ]


def test_an_operator_without_a_row_is_refused() -> None:
    graph = next(case.graph() for case in TABLE if type(case.op) not in TOSA_ROWS)
    with pytest.raises(NotTaken, match=graph.nodes[0].op.name):
        write_node(RegionValues(graph), graph.nodes[0])


def test_every_sum_of_a_softmax_is_divided_by() -> None:
    """The reciprocal of a row's sum is exact for the least and the largest, for powers of two and their neighbours, and
    for many between."""
    lot = np.random.default_rng(7)
    least, most = 65535, 65535 * LONGEST_ROW
    powers = [2**k + d for k in range(16, 30) for d in (-1, 0, 1)]
    heads = [h << k for k in range(8, 21) for h in range(257, 513, 5)]
    sums = np.array([least, most, *powers, *heads, *np.exp(lot.uniform(np.log(least), np.log(most), 30000))], np.int64)
    sums = np.unique(np.clip(np.concatenate([sums, sums - 1, np.arange(least, least + 2000)]), least, most))
    region = RegionValues(Builder().graph((), ()))
    x = region.block.input((1, 1, len(sums), 1), TosaKind.INT32)
    quotient, bit = Rows(region, len(sums)).divide(x)
    region.block.outputs += [quotient.name, bit.name]
    given = {x.name: sums.reshape(x.shape).astype(np.int32)}
    got = reference.run(region.block.file(), given, [quotient.name, bit.name])
    whole = 2 * got[0].astype(np.int64) + got[1]
    np.testing.assert_array_equal(whole.reshape(-1), (2**32 - 1) // sums)

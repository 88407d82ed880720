"""Quantizers of ONNX leave out a ReLU whose zero point does the same: what is cut off must be, wherever it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from tests.frontends.onnx.files import model, node, weights
from tests.frontends.onnx.lower import graph_of

from baretorch.errors import CompileError
from baretorch.ir.graph import interpret
from baretorch.passes.order import lower_graph

FINE, RELU = (0.03125, 0), (0.03125, -128)
IMAGE = {"x": [1, 2, 4, 4]}
CONV = node("Conv", ["xd", "w"], ["m"])


def pair(x: str, y: str, scale: float, zero: int) -> tuple[list[Any], dict[str, Any]]:
    """x quantized and dequantized again."""
    names = [f"{y}_scale", f"{y}_zero"]
    nodes = [node("QuantizeLinear", [x, *names], [f"{y}_q"]), node("DequantizeLinear", [f"{y}_q", *names], [y])]
    return nodes, {names[0]: np.float32(scale), names[1]: np.int8(zero)}


CASES: dict[str, tuple[list[Any], list[str], dict[str, Any]]] = {
    "input": ([pair("x", "y", *RELU)], ["y"], {}),
    "input read as it is too": ([pair("x", "a", *RELU), node("Sub", ["x", "a"], ["y"])], ["y"], {}),
    "no int8 form": (
        [pair("x", "xd", *FINE), node("CumSum", ["xd", "axis"], ["m"]), pair("m", "y", *RELU)],
        ["y"],
        {"axis": np.int64(3)},
    ),
    "weights without a scale": (
        [pair("x", "xd", *FINE), CONV, pair("m", "md", *RELU), node("Conv", ["md", "w"], ["y"])],
        ["y"],
        {"w": weights(2, 2, 1, 1)},
    ),
    "read as it is too": (
        [
            pair("x", "xd", *FINE),
            CONV,
            pair("m", "md", *RELU),
            node("Neg", ["m"], ["n"]),
            node("Add", ["n", "md"], ["y"]),
        ],
        ["y"],
        {"w": weights(2, 2, 1, 1)},
    ),
    "an output too": (
        [pair("x", "xd", *FINE), CONV, pair("m", "y", *RELU)],
        ["y", "m"],
        {"w": weights(2, 2, 1, 1)},
    ),
    "view": (
        [
            pair("x", "xd", *FINE),
            node("Reshape", ["xd", "to"], ["r"]),
            pair("r", "rd", *RELU),
            node("Neg", ["rd"], ["y"]),
        ],
        ["y"],
        {"to": np.array([2, 16])},
    ),
    "one of two views": (
        [
            node("Sin", ["x"], ["m"]),
            node("Reshape", ["m", "to"], ["r"]),
            pair("r", "rd", *RELU),
            node("Transpose", ["m"], ["t"], perm=[0, 2, 3, 1]),
            pair("t", "td", *FINE),
            node("Reshape", ["td", "to"], ["u"]),
            node("Add", ["rd", "u"], ["y"]),
        ],
        ["y"],
        {"to": np.array([2, 16])},
    ),
    "between pixels": (
        [
            pair("x", "xd", *FINE),
            node("Resize", ["xd", "", "scales"], ["m"], mode="linear"),
            pair("m", "y", *RELU),
        ],
        ["y"],
        {"scales": np.array([1, 1, 2, 2], np.float32)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_zero_point_cuts_off_is_cut_off(name: str) -> None:
    parts, outputs, constants = CASES[name]
    nodes: list[Any] = []
    for part in parts:
        nodes += part[0] if isinstance(part, tuple) else [part]
        constants = constants | (part[1] if isinstance(part, tuple) else {})
    made = model(nodes, IMAGE, outputs, constants, opset=21)
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    graph = lower_graph(graph_of(made))
    have = interpret(graph, [port.to_memory(x) for port in graph.takes()])
    want = ReferenceEvaluator(made).run(None, {"x": x})
    for output, port, right in zip(graph.outputs, graph.gives(), want, strict=True):
        np.testing.assert_allclose(port.from_memory(have[output]), right, rtol=0, atol=3 * FINE[0])


def test_numbers_of_16_bits_are_refused() -> None:
    names = ["scale", "zero"]
    nodes = [node("QuantizeLinear", ["x", *names], ["q"]), node("DequantizeLinear", ["q", *names], ["y"])]
    made = model(nodes, IMAGE, ["y"], {"scale": np.float32(1e-4), "zero": np.int16(0)}, opset=21)
    with pytest.raises(CompileError, match="only int8 and uint8 are supported"):
        graph_of(made)


def test_sums_of_a_vector_are_counted() -> None:
    made = model(
        [node("MatMulInteger", ["x", "w"], ["y"])],
        {"x": [1, 3000]},
        ["y"],
        {"w": np.ones(3000, np.int8)},
        types={"x": 3},
    )
    with pytest.raises(CompileError, match="sums of 3000 products"):
        graph_of(made)


@pytest.mark.parametrize("square", [False, True])
def test_first_operand_has_one_scale(square: bool) -> None:
    a = np.ones((4 if square else 3, 4), np.int8)
    scales = np.full(len(a), 0.5, np.float32)
    one, zero = np.float32(1), np.int8(0)
    given = {"a": a, "as": scales, "az": np.zeros(len(a), np.int8), "bs": one, "bz": zero, "ys": one, "yz": zero}
    inputs = ["a", "as", "az", "x", "bs", "bz", "ys", "yz"]
    made = model([node("QLinearMatMul", inputs, ["y"])], {"x": [4, 4]}, ["y"], given, types={"x": 3, "y": 3})
    with pytest.raises(CompileError, match="must have one scale"):
        graph_of(made)


def test_transposed_convolution_that_begins_with_nothing_is_refused() -> None:
    made = model(
        [node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 3], auto_pad="SAME_UPPER")],
        IMAGE,
        ["y"],
        {"w": weights(2, 2, 1, 1)},
    )
    with pytest.raises(CompileError, match="first outputs are made of no input"):
        graph_of(made)

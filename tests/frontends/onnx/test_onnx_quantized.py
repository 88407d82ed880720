"""Files that are quantized already: in int8 without a float layer, with the numbers that onnxruntime gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnxruntime.quantization import QuantFormat, QuantType
from tests.cli.program import baretorch as cli
from tests.frontends.onnx.files import BOOL, FLOAT, INT8, UINT8, model, node, small_cnn
from tests.frontends.onnx.lower import graph_of
from tests.frontends.onnx.quantizer import quantized_file
from tests.models import int8_file

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.consecutive_calls import Calls
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import to_graph
from baretorch.ir.graph import Array, interpret
from baretorch.measure import facts
from baretorch.passes.order import lower_graph
from baretorch.passes.to_int8 import float_layers

QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator
SIGNED, UNSIGNED = QuantType.QInt8, QuantType.QUInt8


@pytest.mark.parametrize(
    ("form", "activations", "weight_type", "per_channel"),
    [
        (QDQ, SIGNED, SIGNED, True),
        (QDQ, UNSIGNED, SIGNED, False),
        (QDQ, UNSIGNED, UNSIGNED, False),
        (QOPERATOR, SIGNED, SIGNED, True),
        (QOPERATOR, UNSIGNED, UNSIGNED, False),
    ],
)
def test_what_onnxruntime_quantizes(
    tmp_path: Path, form: QuantFormat, activations: QuantType, weight_type: QuantType, per_channel: bool
) -> None:
    (tmp_path / "net.onnx").write_bytes(small_cnn().SerializeToString())
    file = quantized_file(tmp_path, tmp_path / "net.onnx", form, activations, weight_type, per_channel)
    source = frontends.load(str(file))
    graph = lower_graph(source.graph)
    assert float_layers(graph) == []
    assert source.expected is not None and graph.is_int8 and source.library == "onnxruntime"
    (have,) = interpret(graph, source.examples).values()
    assert np.abs(have - source.expected[0]).max() <= 1 / 255 + 1e-6


@pytest.mark.parametrize(("zero", "told"), [(128, 0), (100, 1)])
def test_weights_with_a_zero_point(zero: int, told: int) -> None:
    """Our weights have no zero point. If weights without theirs do not fit int8, they are rounded, and a warning
    reports it."""
    constants = {
        "s": np.float32(0.02),
        "z": np.int8(0),
        "w": (np.arange(12) * 23).astype(np.uint8).reshape(4, 3),
        "ws": np.float32(0.01),
        "wz": np.uint8(zero),
        "ys": np.float32(0.1),
    }
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["r"]),
        node("MatMul", ["d", "r"], ["m"]),
        node("QuantizeLinear", ["m", "ys", "z"], ["o"]),
        node("DequantizeLinear", ["o", "ys", "z"], ["y"]),
    ]
    made = model(nodes, {"x": [2, 4]}, ["y"], constants)
    read_back = parse(made.SerializeToString())
    graph, notes = to_graph(read_back, interface_of(read_back, {}, {}), "test")
    assert len(notes) == told
    x = np.random.default_rng(0).uniform(-2, 2, (2, 4)).astype(np.float32)
    done = lower_graph(graph)
    assert float_layers(done) == []
    (have,) = interpret(done, [x]).values()
    assert np.abs(have - runs(made, x)[0]).max() <= 0.1001


def test_a_float_file_is_quantized_with_data_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(small_cnn().SerializeToString())
    samples = np.random.default_rng(1).standard_normal((20, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "calibration.npz", x=samples)
    made = int8_file(tmp_path / "net.onnx")
    source, graph = made.source, made.graph
    assert float_layers(graph) == [] and made.quantization and len(made.quantization.samples) == 20
    assert source.library == "onnxruntime" and source.expected is not None
    (have,) = interpret(graph, source.examples).values()
    assert 0 < np.abs(have - source.expected[0]).max() < 0.02


def test_int8_of_a_quantized_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(small_cnn().SerializeToString())
    file = quantized_file(tmp_path, tmp_path / "net.onnx", QDQ)
    with pytest.raises(CompileError, match="quantized already"):
        int8_file(str(file))


@pytest.mark.parametrize(("part", "told"), [(0.2, False), (0.3, True)])
def test_answers_far_from_the_runtime_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: float, told: bool
) -> None:
    """Rounding in a quantized model may be a quarter of the output's largest number, and no more."""
    file = tmp_path / "net.onnx"
    file.write_bytes(one("QLinearAdd", 2, np.int8, 128, "com.microsoft").SerializeToString())
    monkeypatch.setattr(facts, "largest_error", lambda have, want: part * np.abs(want[0]).max())
    monkeypatch.setattr(Calls, "explains", lambda calls, answers: False)
    result = cli("run", str(file), "--board", "host", "--out", str(tmp_path))
    assert result.code == int(told) and ("is more than 0.25 of" in " ".join(result.out.split())) == told


def runs(made: Any, *inputs: Array) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    return list(session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}))


def one(op: str, operands: int, dtype: Any, zero: int, domain: str, **attributes: Any) -> Any:
    """A model of one QLinear operator: x -> quantize -> op -> dequantize -> y; another operand is a constant."""
    signed = zero - (0 if dtype is np.uint8 else 128)
    constants: dict[str, Any] = {
        "s": np.float32(0.03),
        "z": dtype(signed),
        "c": (np.arange(2 * 4 * 4) * 5 % 200 - (0 if dtype is np.uint8 else 100)).astype(dtype).reshape(1, 2, 4, 4),
        "t": np.float32(0.02),
        "u": np.float32(0.05),
        "v": dtype(signed + 3),
    }
    first = ["q", "s", "z"]
    inputs = first + ["c", "t", "z"] * (operands - 1) + ["u", "v"]
    if op == "QLinearConcat":
        inputs = ["u", "v", *first, "c", "t", "z"]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node(op, inputs, ["r"], domain=domain, **attributes),
        node("DequantizeLinear", ["r", "u", "v"], ["y"]),
    ]
    return model(nodes, {"x": [1, 2, 4, 4]}, ["y"], constants, domains={"com.microsoft": 1})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("QLinearAdd", 2, {}),
        ("QLinearMul", 2, {}),
        ("QLinearConcat", 2, {"axis": 1}),
        ("QLinearAveragePool", 1, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", 1, {}),
        ("QLinearSigmoid", 1, {}),
        ("QLinearLeakyRelu", 1, {"alpha": 0.125}),
        ("QLinearSoftmax", 1, {"axis": -1, "opset": 13}),
    ],
)
def test_one_operator_on_integers(op: str, operands: int, attributes: dict[str, Any], dtype: Any) -> None:
    made = one(op, operands, dtype, 120, "com.microsoft", **attributes)
    x = np.random.default_rng(0).uniform(-3, 3, (1, 2, 4, 4)).astype(np.float32)
    graph = lower_graph(graph_of(made))
    assert float_layers(graph) == []
    (have,) = interpret(graph, [x]).values()
    (want,) = runs(made, x)
    assert np.abs(have - want).max() <= 0.05 * 1.001, "one step of the output's scale"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_products_on_integers(dtype: Any) -> None:
    """QLinearConv with a scale per channel and a bias, QLinearMatMul with one per column."""
    mid = 0 if dtype is np.int8 else 128
    constants = {
        "s": np.float32(0.04),
        "z": dtype(mid - 5),
        "w": (np.arange(3 * 2 * 9) * 11 % 255 - 127).astype(np.int8).reshape(3, 2, 3, 3),
        "ws": np.float32([0.01, 0.02, 0.03]),
        "wz": np.zeros(3, np.int8),
        "b": np.int32([100, -200, 3000]),
        "t": np.float32(0.2),
        "tz": dtype(mid + 7),
        "m": (np.arange(4 * 5) * 23 % 255 - 127).astype(np.int8).reshape(4, 5),
        "ms": np.float32([0.01, 0.02, 0.03, 0.04, 0.05]),
        "mz": np.zeros(5, np.int8),
        "u": np.float32(0.5),
    }
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "t", "tz", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("QLinearMatMul", ["c", "t", "tz", "m", "ms", "mz", "u", "z"], ["p"]),
        node("DequantizeLinear", ["p", "u", "z"], ["y"]),
    ]
    made = model(nodes, {"x": [1, 2, 4, 4]}, ["y"], constants)
    x = np.random.default_rng(0).uniform(-3, 3, (1, 2, 4, 4)).astype(np.float32)
    graph = lower_graph(graph_of(made))
    assert float_layers(graph) == []
    (have,) = interpret(graph, [x]).values()
    assert np.abs(have - runs(made, x)[0]).max() <= 0.5 * 1.001


def test_int8_at_the_border() -> None:
    """int8 inputs and outputs of the file are int8 in C, and nothing in between is float."""
    constants = {
        "s": np.float32(0.05),
        "z": np.int8(3),
        "w": np.arange(-6, 6, dtype=np.int8).reshape(3, 4),
        "ws": np.float32([0.1, 0.2, 0.3]),
        "wz": np.zeros(3, np.int8),
        "t": np.float32(0.1),
    }
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["r"], axis=0),
        node("Gemm", ["d", "r"], ["m"], transB=1),
        node("QuantizeLinear", ["m", "t", "z"], ["y"]),
    ]
    made = model(nodes, {"x": [2, 4]}, ["y"], constants, types={"x": INT8, "y": INT8})
    x = np.int8([[-128, 0, 3, 127], [10, 20, 30, 40]])
    graph = lower_graph(graph_of(made))
    assert float_layers(graph) == [] and {n.op.name for n in graph.nodes} == {"qlinear"}
    (have,) = interpret(graph, [x]).values()
    assert np.abs(have.astype(int) - runs(made, x)[0]).max() <= 1


def test_uint8_at_the_border() -> None:
    """Inputs and outputs of the file's type, and moves of numbers that are stored."""
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        node("Relu", ["r"], ["a"]),
        node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        node("Transpose", ["q"], ["y"], perm=[1, 0]),
    ]
    constants = {"s": np.float32(0.5), "z": np.uint8(100)}
    made = model(nodes, {"x": [2, 3]}, ["y"], constants, types={"x": UINT8, "y": UINT8})
    x = np.uint8([[0, 50, 100], [101, 200, 255]])
    graph = graph_of(made)
    for g in (graph, lower_graph(graph)):
        (have,) = interpret(g, [x]).values()
        assert have.dtype == np.uint8
        assert np.array_equal(have, runs(made, x)[0])


def test_integer_products_are_exact() -> None:
    nodes = [node("MatMulInteger", ["x", "w", "z", "zw"], ["y"])]
    constants = {
        "w": (np.arange(12) * 37 % 250 - 120).astype(np.int8).reshape(4, 3),
        "z": np.int8(3),
        "zw": np.int8(-7),
    }
    made = model(nodes, {"x": [2, 4]}, ["y"], constants, types={"x": INT8, "y": 6})
    x = (np.arange(8) * 31 % 255 - 127).astype(np.int8).reshape(2, 4)
    graph = graph_of(made)
    assert np.array_equal(interpret(graph, [x])[graph.outputs[0]], runs(made, x)[0])
    large = model(
        nodes, {"x": [2, 300]}, ["y"], {**constants, "w": np.zeros((300, 3), np.int8)}, types={"x": INT8, "y": 6}
    )
    with pytest.raises(CompileError, match="sums of 300 products"):
        graph_of(large)


def test_dynamic_quantization_is_refused_by_name() -> None:
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], "measure"), node("Identity", ["q"], ["y"])]
    with pytest.raises(CompileError) as caught:
        graph_of(model(nodes, {"x": [2, 3]}, ["y"], types={"y": UINT8}))
    assert "DynamicQuantizeLinear" in caught.value.what and caught.value.at == ("measure: DynamicQuantizeLinear",)
    assert "quantize_static" in caught.value.try_[0]


def test_blocks_of_weights_have_their_values() -> None:
    constants = {"w": np.arange(-8, 8, dtype=np.int8).reshape(2, 8), "s": np.float32([[0.5, 2], [1, 4]])}
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["d"], axis=1, block_size=4),
        node("Mul", ["x", "d"], ["y"]),
    ]
    graph = graph_of(model(nodes, {"x": [2, 8]}, ["y"], constants, opset=21))
    x = np.ones((2, 8), np.float32)
    want = constants["w"] * np.repeat(constants["s"], 4, 1)
    assert np.array_equal(interpret(graph, [x])[graph.outputs[0]], want)


def branch(stored: str, made: str, kind: int) -> Any:
    """A graph within a node, which gives a tensor of the graph around it."""
    return helper.make_graph(
        [node("Identity", [stored], [made])], made, [], [helper.make_tensor_value_info(made, kind, None)]
    )


def mixed(kind: int) -> dict[str, list[Any]]:
    """Return a model in which stored numbers meet others: r from x stored as q and -x as p, and from the bytes c."""
    choice = {"then_branch": branch("q", "a", kind), "else_branch": branch("p", "b", kind)}
    return {
        "constant": [node("Concat", ["q", "c"], ["r"], axis=1)],
        "branch": [node("If", ["t"], ["r"], **choice)],
        "where": [node("Where", ["t", "q", "c"], ["r"])],
        "pad": [node("Pad", ["q", "pads", "z"], ["r"])],
        "clip": [node("Clip", ["q", "z"], ["r"])],
        "by hand": [
            node("Cast", ["q"], ["f"], to=FLOAT),
            node("Cast", ["z"], ["g"], to=FLOAT),
            node("Sub", ["f", "g"], ["d"]),
            node("Mul", ["d", "s"], ["m"]),
            node("QuantizeLinear", ["m", "s", "z"], ["r"]),
        ],
    }


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", mixed(INT8))
def test_stored_numbers_with_others(dtype: Any, name: str) -> None:
    kind, zero = (INT8, 3) if dtype is np.int8 else (UINT8, 131)
    constants = {"s": np.float32(0.125), "z": dtype(zero), "c": np.arange(4, dtype=dtype).reshape(1, 4)}
    if name == "pad":
        constants |= {"pads": np.array([0, 1, 0, 1])}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("Neg", ["x"], ["n"]),
        node("QuantizeLinear", ["n", "s", "z"], ["p"]),
        *mixed(kind)[name],
        node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    with_truth = name in ("branch", "where")
    made = model(nodes, {"x": [1, 4]} | ({"t": [1]} if with_truth else {}), ["y"], constants, types={"t": BOOL})
    x = np.float32([[-1.5, 0.25, 2, 3]])
    for truth in (True, False) if with_truth else (True,):
        given = [x, np.array([truth])][: 1 + with_truth]
        graph = graph_of(made)
        for done in (graph, lower_graph(graph)):
            (have,) = interpret(done, given).values()
            np.testing.assert_array_equal(have, runs(made, *given)[0])

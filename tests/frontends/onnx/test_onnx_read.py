"""ONNX files become Graphs with ONNX's own answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, helper
from tests.frontends.onnx.files import FLOAT, INT64, model, node, small_cnn
from tests.frontends.onnx.lower import alike, compared, graph_of

from baretorch import frontends
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.proto import model_to_text
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import TABLE, to_graph
from baretorch.passes.order import lower_graph


def test_a_small_cnn_with_shape_arithmetic() -> None:
    graph = compared(small_cnn())
    assert {n.op.name for n in graph.nodes} == {
        *("permute", "conv2d", "clamp", "max_pool2d", "reshape", "linear", "softmax")
    }
    assert [t.origin.path for t in graph.tensors.values() if t.origin.path == "conv"], "layers have the nodes' names"


def test_nodes_in_any_order() -> None:
    """Nodes inside a branch may come in any order too, and read what is made after the branch in the file."""
    branch = [node("Relu", ["m"], ["o"], "relu"), node("Neg", ["late"], ["m"], "neg")]
    side = helper.make_graph(branch, "side", [], [helper.make_tensor_value_info("o", FLOAT, [3])])
    nodes = [
        node("Add", ["i", "late"], ["y"], "sum"),
        node("If", ["c"], ["i"], "choice", then_branch=side, else_branch=side),
        node("Exp", ["x"], ["late"], "exp"),
        node("ReduceMax", ["x"], ["greatest"], keepdims=0),
        node("Less", ["k", "greatest"], ["c"]),
    ]
    given = model(nodes, {"x": [3]}, ["y"], {"k": np.float32(0)})
    x = np.float32([-1, 0.5, 2])
    alike(graph_of(given), [x], [np.exp(x)], 1e-6)  # relu(-exp(x)) is 0
    read = parse(given.SerializeToString())
    assert [n.name for n in read.graph.node if n.name] == ["exp", "choice", "sum"]
    in_order = parse(small_cnn().SerializeToString())
    assert in_order.graph == small_cnn().graph, "an order that is right is kept"


def test_an_identity_gather_is_nothing() -> None:
    nodes = [node("Gather", ["x", "i"], ["g"], axis=1), node("Relu", ["g"], ["y"])]
    graph = compared(model(nodes, {"x": [1, 5]}, ["y"], {"i": np.arange(5)}))
    assert [n.op.name for n in graph.nodes] == ["clamp"]


def test_functions_of_the_model_are_written_out() -> None:
    """The call has an attribute, a default attribute, and an omitted input."""
    body = [
        helper.make_node("Constant", [], ["k"]),
        node("Mul", ["a", "k"], ["m"]),
        node("Clip", ["m", "low"], ["r"]),
    ]
    body[0].attribute.add(name="value_float", ref_attr_name="factor", type=AttributeProto.FLOAT)
    opsets = [helper.make_opsetid("", 18)]
    function = helper.make_function("own", "scaled", ["a", "low"], ["r"], body, opsets, ["factor"])
    nodes = [node("scaled", ["x", ""], ["y"], "scale", factor=3.0, domain="own")]
    graph = compared(model(nodes, {"x": [2, 3]}, ["y"], domains={"own": 1}, functions=[function]))
    assert [n.op.name for n in graph.nodes] == ["mul"], "limits that are left out are none"
    assert graph[graph.nodes[0].outputs[0]].origin.path == "scale/m"


def test_a_loaded_file_asks_the_runtime(tmp_path: Path) -> None:
    file = tmp_path / "small.onnx"
    file.write_bytes(small_cnn().SerializeToString())
    source = frontends.load(str(file))
    assert source.library == "onnxruntime"
    assert source.expected is not None
    assert source.notes == ("x: the batch batch is 1; --shape sets another",)
    assert lower_graph(source.graph).macs() == 8 * 8 * 9 * 2 * 4 + 64 * 3
    assert source.graph.labels == ("y",)


def test_unused_constants_are_removed() -> None:
    graph = graph_of(small_cnn())
    assert all(t.data is None or t.dtype.label == "float32" for t in graph.tensors.values())


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_constants_of_other_floats_are_reported(dtype: Any) -> None:
    """If a model computes in float32, a cast of its constants is computed while it is read, and there is no warning."""
    made = model(
        [node("Cast", ["k"], ["c"], to=1), node("Mul", ["x", "c"], ["y"])], {"x": [3]}, ["y"], {"k": dtype(0.5)}
    )
    read = parse(made.SerializeToString())
    graph, notes = to_graph(read, interface_of(read, {}, {}), "test")
    assert notes == () and [n.op.name for n in graph.nodes] == ["mul"]
    made = model([node("Gather", ["k", "i"], ["y"])], {"i": [1]}, ["y"], {"k": dtype([0.5, 2])}, types={"i": INT64})
    read = parse(made.SerializeToString())
    assert to_graph(read, interface_of(read, {}, {}), "test")[1] == (
        f"{np.dtype(dtype)} constants are taken as float32",
    )


@pytest.mark.parametrize("op", ["HardSwish", "MeanVarianceNormalization", "Softplus"])
def test_functions_of_the_schema_are_written_out(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator without a row is what ONNX defines it by."""
    monkeypatch.delitem(TABLE, op)
    graph = compared(model([node(op, ["x"], ["y"], "whole")], {"x": [2, 3, 2, 2]}, ["y"]))
    assert all(t.origin.path.startswith("whole/") for n in graph.nodes for t in graph.of(n.outputs))


def test_the_text_for_people() -> None:
    text = model_to_text(small_cnn())
    assert "input  x: float[batch, 2, 8, 8]" in text
    assert "c = Conv(x, w, b, pads=[1, 1, 1, 1])  # conv" in text


def test_a_runtime_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """onnx.reference gives the same results if onnxruntime is not installed."""
    (tmp_path / "small.onnx").write_bytes(small_cnn().SerializeToString())
    with_it = frontends.load(str(tmp_path / "small.onnx"))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    without = frontends.load(str(tmp_path / "small.onnx"))
    assert (with_it.library, without.library) == ("onnxruntime", "onnx.reference")
    assert with_it.expected is not None and without.expected is not None
    np.testing.assert_allclose(with_it.expected[0], without.expected[0], rtol=1e-5)
    reference = without.references["forward"]
    assert 0 < np.abs(reference.moved(1)[0] - reference.answers[0]).max() < 1e-5

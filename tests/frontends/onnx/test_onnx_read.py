"""ONNX files become Graphs with ONNX's own answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import AttributeProto, helper
from tests.frontends.onnx.files import model, node, small_cnn
from tests.frontends.onnx.lower import compared, graph_of

from baretorch import frontends
from baretorch.pipeline import optimized


def test_a_small_cnn_with_shape_arithmetic() -> None:
    graph = compared(small_cnn())
    assert {n.op.name for n in graph.nodes} == {
        *("permute", "conv2d", "clamp", "max_pool2d", "reshape", "linear", "softmax")
    }
    assert [t.origin.path for t in graph.tensors.values() if t.origin.path == "conv"], "layers have the nodes' names"


def test_an_identity_gather_is_nothing() -> None:
    nodes = [node("Gather", ["x", "i"], ["g"], axis=1), node("Relu", ["g"], ["y"])]
    graph = compared(model(nodes, {"x": [1, 5]}, ["y"], {"i": np.arange(5)}))
    assert [n.op.name for n in graph.nodes] == ["clamp"]


def test_functions_of_the_model_are_written_out() -> None:
    """With an attribute of the call, one by default, and an input that is left out."""
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
    assert optimized(source.graph).macs() == 8 * 8 * 9 * 2 * 4 + 64 * 3
    assert source.graph.labels == ("y",)


def test_constants_that_nobody_reads_are_gone() -> None:
    graph = graph_of(small_cnn())
    assert all(t.data is None or t.dtype.label == "float32" for t in graph.tensors.values())

"""Small ONNX models for tests, made with onnx.helper alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, FLOAT16, INT64, BOOL, INT8, UINT8 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.UINT8,
)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    opset: int = 18,
    types: Mapping[str, int] | None = None,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[Any] = (),
) -> Any:
    """A ModelProto. Inputs are float if `types` does not say otherwise; outputs say no shape."""
    kinds = types or {}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(n, kinds.get(n, FLOAT), s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, kinds.get(n, FLOAT), None) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)


def weights(*shape: int) -> Any:
    """Numbers that are exact in binary."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 % 17 - 8) / 16).astype(np.float32).reshape(shape)


def small_cnn() -> Any:
    """A convolution, a pool, shape arithmetic as exporters write it, and a linear layer."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], "relu"),
        node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", ["p"], ["shape"], "shape"),
        node("Gather", ["shape", "zero"], ["batch"], "batch"),
        node("Concat", ["batch", "rest"], ["flat"], "flat", axis=0),
        node("Reshape", ["p", "flat"], ["v"], "view"),
        node("Gemm", ["v", "fw", "fb"], ["g"], "fc", transB=1),
        node("Softmax", ["g"], ["y"], "softmax", axis=1),
    ]
    constants = {
        "w": weights(4, 2, 3, 3),
        "b": weights(4),
        "zero": np.array([0]),
        "rest": np.array([-1]),
        "fw": weights(3, 64),
        "fb": weights(3),
    }
    return model(nodes, {"x": ["batch", 2, 8, 8]}, ["y"], constants)

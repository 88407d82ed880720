"""Run an ONNX model in double precision, to decide whether float32 overflowed in the original or in ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from baretorch.frontends.onnx.tensors import array_of, tensor_of
from baretorch.ir.graph import Array


def in_double(model: Any, feeds: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs by name, computed by onnx.reference with float64 wherever the model says float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    _widen(wide.graph)
    given = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in feeds.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = ReferenceEvaluator(wide).run(None, given)
    return dict(zip((o.name for o in model.graph.output), map(np.asarray, made), strict=True))


def _widen(graph: Any) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            if attribute.HasField("g"):
                _widen(attribute.g)
            if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    _widen_types((*graph.input, *graph.output, *graph.value_info))


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(tensor_of(array_of(tensor).astype(np.float64), tensor.name))


def _widen_types(values: Iterable[Any]) -> None:
    for value in values:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE

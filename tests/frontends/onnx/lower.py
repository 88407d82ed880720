"""An ONNX model -> Graph, and what ONNX's own reference answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import to_graph
from baretorch.frontends.source import random_inputs
from baretorch.ir.graph import Array, Graph, Shape, interpret


def graph_of(model: Any, shapes: dict[str, Shape] | None = None) -> Graph:
    read = parse(model.SerializeToString())
    return to_graph(read, interface_of(read, shapes or {}, {}), "test")[0]


def compared(model: Any, *inputs: Array, shapes: dict[str, Shape] | None = None, tolerance: float = 1e-5) -> Graph:
    """The Graph, whose answers are those of onnx.reference."""
    graph = graph_of(model, shapes)
    given = inputs or random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs))
    return alike(
        graph, given, ReferenceEvaluator(model).run(None, dict(zip(graph.inputs, given, strict=True))), tolerance
    )


def alike(graph: Graph, given: Sequence[Array], want: Sequence[Any], tolerance: float) -> Graph:
    """The Graph, which gives what is wanted: the same shapes and types, and the same numbers within the tolerance."""
    have = interpret(graph, given)
    for name, w in zip(graph.outputs, want, strict=True):
        assert (have[name].shape, have[name].dtype) == (np.shape(w), np.asarray(w).dtype)
        np.testing.assert_allclose(have[name], w, rtol=tolerance, atol=tolerance)
    return graph

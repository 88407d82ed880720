"""Operators of opset 7 to 13 mean what they meant then: results are onnxruntime's for the file as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator
from tests.frontends.onnx.files import BOOL, FLOAT, model, node, weights
from tests.frontends.onnx.lower import alike, graph_of
from tests.frontends.onnx.version_cases import CASES, Case, Fed

from baretorch.errors import CompileError
from baretorch.frontends.onnx.definitions import has_meaning
from baretorch.frontends.onnx.table import TABLE
from baretorch.frontends.onnx.versions import FORM, REWRITES
from baretorch.ir.graph import Array, Graph, interpret

OLDEST = 7  # that onnxruntime runs
STEPS = ("QuantizeLinear", "QLinearMatMul", "QLinearConv")  # their results are rounded: one may be the next number


@cache
def versions() -> dict[str, tuple[int, ...]]:
    """Return, for every operator that is read, the first opset from 7 to 14 of each of its versions."""
    found: dict[str, set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated and schema.since_version <= FORM:
            found.setdefault(schema.name, set()).add(schema.since_version)
    known = {op for op, row in TABLE.items() if not row.refused} | set(REWRITES) | {"Constant"}
    made = {}
    for op, every in found.items():
        if op in TABLE and TABLE[op].refused:
            continue
        old = [v for v in every if v <= OLDEST]
        last = max(every) if defs.has(op, FORM, "") and not defs.get_schema(op, FORM, "").deprecated else 0
        if op in known or (last and has_meaning(op, FORM)):
            made[op] = tuple(sorted({*(v for v in every if v > OLDEST), *([OLDEST] if old else [])}))
    return made


def model_of(op: str, case: Case, opset: int) -> tuple[Any, dict[str, Array]]:
    """Return a model with the node alone, and its inputs. The types of its outputs are inferred."""
    names = ["" if x is None else f"i{n}" for n, x in enumerate(case.inputs)]
    fed = {n: np.asarray(x.value) for n, x in zip(names, case.inputs, strict=True) if isinstance(x, Fed)}
    constants = {n: x for n, x in zip(names, case.inputs, strict=True) if n and n not in fed}
    outputs = [f"o{i}" for i in range(case.outputs)]
    graph = helper.make_graph(
        [node(op, names, outputs, "layer", **case.attributes)],
        "one",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in fed.items()],
        [helper.make_empty_tensor_value_info(o) for o in outputs[: case.reads]],
        [numpy_helper.from_array(np.asarray(x), n) for n, x in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made = shape_inference.infer_shapes(made, data_prop=True)
    for o in made.graph.output:
        if not o.type.tensor_type.elem_type:  # inference knows nothing if it does not know the shape
            o.type.tensor_type.elem_type = FLOAT
    return made, fed


def expected(model: Any, fed: dict[str, Array]) -> list[Array]:
    """Return onnxruntime's results, or those of onnx.reference if it has no kernel for the operator."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        assert "NOT_IMPLEMENTED" in str(error) or "NotImplemented" in type(error).__name__, str(error)
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, fed)]
    return [np.asarray(y) for y in session.run(None, fed)]


@pytest.mark.parametrize("op", sorted(versions()))
def test_every_version_of_an_operator(op: str) -> None:
    for opset in versions()[op]:
        cases = [c for c in CASES.get(op, ()) if c.since <= opset < c.until]
        assert cases, f"{op} of opset {opset} has no case"
        for case in cases:
            model, fed = model_of(op, case, opset)
            graph = graph_of(model)
            check = assert_steps if op in STEPS else alike
            check(graph, [fed[n] for n in graph.inputs], expected(model, fed), 1e-5)


@pytest.mark.parametrize("op", sorted(op for op, (before, _) in REWRITES.items() if before > OLDEST))
def test_constants_are_computed_as_in_their_version(op: str) -> None:
    """onnx.reference computes constants, and knows only the newest meaning of some operators."""
    for opset in versions()[op]:
        for c in (c for c in CASES[op] if c.since <= opset < min(c.until, FORM)):
            fixed = [x.value if isinstance(x, Fed) else x for x in c.inputs]
            model, _ = model_of(op, replace(c, inputs=tuple(fixed)), opset)
            graph = alike(graph_of(model), [], expected(model, {}), 1e-5)
            assert not graph.nodes or op == "Scan"


def assert_steps(graph: Graph, given: Sequence[Array], want: Sequence[Array], _: float) -> None:
    made = interpret(graph, given)
    for name, w in zip(graph.outputs, want, strict=True):
        assert made[name].dtype == w.dtype
        assert np.abs(made[name].astype(int) - w.astype(int)).max() <= 1


X = weights(2, 3, 4)
OLDER: dict[
    str, tuple[str, tuple[Any, ...], dict[str, Any], Any]
] = {  # of opset 6: operator, inputs, attributes, result
    "equal": ("Add", (X, X), {}, X + X),
    "suffix": ("Sub", (X, weights(4)), {"broadcast": 1}, X - weights(4)),
    "middle": ("Mul", (X, weights(3)), {"broadcast": 1, "axis": 1}, X * weights(3)[:, None]),
    "first": ("Div", (X, weights(2) + 2), {"broadcast": 1, "axis": 0}, X / (weights(2)[:, None, None] + 2)),
    "from_the_end": ("Less", (X, weights(3)), {"broadcast": 1, "axis": -2}, weights(3)[:, None] > X),
    "scalar": ("Greater", (X, weights(1)), {"broadcast": 1}, weights(1) < X),
    "prelu": ("PRelu", (X, weights(3)), {}, np.where(X < 0, X * weights(3)[:, None], X)),
    "gemm": (
        "Gemm",
        (weights(2, 3), weights(3, 4), weights(4)),
        {"broadcast": 1},
        weights(2, 3) @ weights(3, 4) + weights(4),
    ),
    "upsample": (
        *("Upsample", (weights(1, 1, 2, 3),), {"height_scale": 2.0, "width_scale": 1.0}),
        weights(1, 1, 2, 3).repeat(2, axis=2),
    ),
    "dropout": ("Dropout", (X,), {"is_test": 1}, X),
    "norm": (
        *("BatchNormalization", (X, *(weights(3) + k for k in (1, 2, 0, 3))), {"is_test": 1, "epsilon": 0.25}),
        (X - weights(3)[:, None]) / np.sqrt(weights(3) + 3.25)[:, None] * (weights(3) + 1)[:, None]
        + (weights(3) + 2)[:, None],
    ),
}


@pytest.mark.parametrize("name", OLDER)
def test_opset_6(name: str) -> None:
    """onnxruntime does not run opset 6. tests/onnx_nodes/files.py reads 112 more such files, which have results."""
    op, inputs, attributes, want = OLDER[name]
    fed = {"x": inputs[0]} | {f"w{i}": w for i, w in enumerate(inputs[1:])}
    types = {"y": BOOL if np.asarray(want).dtype == np.bool_ else FLOAT}
    made = model(
        [node(op, [*fed], ["y"], **attributes)], {"x": inputs[0].shape}, ["y"], dict([*fed.items()][1:]), 6, types
    )
    alike(graph_of(made), [inputs[0]], [want], 1e-5)


def test_an_axis_of_opset_6_that_cannot_be() -> None:
    for axis in (-(1 << 63), 3):
        made = model([node("Add", ["x", "w"], ["y"], broadcast=1, axis=axis)], {"x": [2, 3]}, ["y"], {"w": X}, 6)
        with pytest.raises(CompileError):
            graph_of(made)


def test_opset_6_in_training_mode() -> None:
    for op, constants in (("Dropout", {}), ("BatchNormalization", {n: weights(3) for n in "abcd"})):
        with pytest.raises(CompileError, match=f"{op} of an old opset: it is in training mode"):
            graph_of(model([node(op, ["x", *constants], ["y"])], {"x": [2, 3]}, ["y"], constants, 6))

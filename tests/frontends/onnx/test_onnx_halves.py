"""ONNX models with float16 and bfloat16, compared with onnxruntime and onnx.reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from tests.frontends.onnx.files import model, node, weights

from baretorch import frontends
from baretorch.frontends.onnx.halves import widen_halves
from baretorch.frontends.source import Source
from baretorch.ir.graph import DType, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.passes.equivalence import TOLERANCES
from baretorch.pipeline import lower

TYPES: dict[str, tuple[int, Any, DType]] = {
    "float16": (TensorProto.FLOAT16, np.float16, DType.FLOAT16),
    "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16, DType.BFLOAT16),
}
both = pytest.mark.parametrize("name", TYPES)


def read(made: Any, folder: Path) -> Source:
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    return frontends.load(str(folder / "net.onnx"))


def run(source: Source) -> tuple[np.ndarray, ...]:
    graph = lower(source).graph
    return real_outputs(graph, tuple(interpret(graph, store_inputs(graph, source.examples)).values()))


def layers(number: int, kind: Any) -> Any:
    """A product with half weights, a cast inside, a constant of its own type, and a softmax."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"], "product"),
        node("Cast", ["p"], ["c"], "cast", to=TensorProto.FLOAT),
        node("Mul", ["c", "two"], ["m"], "mul"),
        node("Cast", ["m"], ["h"], "back", to=number),
        node("Add", ["h", "b"], ["s"], "add"),
        node("Softmax", ["s"], ["y"], "softmax"),
    ]
    constants = {"w": weights(4, 3).astype(kind), "two": np.float32(2), "b": weights(3).astype(kind)}
    return model(nodes, {"x": [2, 4]}, ["y"], constants, types={"x": number, "y": number})


@both
def test_a_model_in_halves(name: str, tmp_path: Path) -> None:
    number, kind, half = TYPES[name]
    source = read(layers(number, kind), tmp_path)
    graph = source.graph
    assert [t.dtype for t in graph.of((*graph.inputs, *graph.outputs))] == [half, half]
    assert f"{name}: computed in float32; inputs and outputs are stored as declared" in source.notes
    assert source.expected is not None
    np.testing.assert_allclose(run(source)[0], source.expected[0], rtol=0, atol=TOLERANCES[half])
    assert source.eager is not None and source.references  # the passes are compared in float32, and so strictly
    assert source.references["forward"].arithmetic is DType.FLOAT32
    again = source.eager()(source.examples[0])
    np.testing.assert_array_equal(again, source.expected[0])


def test_the_original_of_float16_computes_in_float16(tmp_path: Path) -> None:
    source = read(layers(*TYPES["float16"][:2]), tmp_path)
    assert (source.library, source.arithmetic) == ("onnxruntime", DType.FLOAT16)
    assert source.expected is not None
    stored = source.expected[0].astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(stored, source.expected[0])


@both
def test_state_in_halves(name: str, tmp_path: Path) -> None:
    number = TYPES[name][0]
    made = model([node("Add", ["x", "h"], ["y"])], {"x": [2], "h": [2]}, ["y"], types=dict.fromkeys("xhy", number))
    made.graph.output.add().CopyFrom(made.graph.output[0])
    made.graph.output[1].name = "next"
    made.graph.node.append(node("Identity", ["y"], ["next"]))
    (tmp_path / "net.state.toml").write_text('h = "next"\n')
    source = read(made, tmp_path)
    graph = lower(source).graph
    memory: dict[str, Any] = {}
    given = store_inputs(graph, source.examples)
    found = [real_outputs(graph, tuple(interpret(graph, given, memory=memory).values()))[0] for _ in range(2)]
    assert source.expected is not None and source.expected_again is not None
    np.testing.assert_array_equal(found, [source.expected[0], source.expected_again[0]])


@both
def test_weights_that_are_only_stored_as_halves(name: str, tmp_path: Path) -> None:
    """The model computes in float32, so it is compared as strictly as any."""
    kind = TYPES[name][1]
    nodes = [node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), node("MatMul", ["x", "f"], ["y"])]
    source = read(model(nodes, {"x": [2, 4]}, ["y"], {"w": weights(4, 3).astype(kind)}), tmp_path)
    assert source.arithmetic is DType.FLOAT32
    assert not any(t.dtype.is_half for t in source.graph.tensors.values())
    assert source.expected is not None
    np.testing.assert_allclose(run(source)[0], source.expected[0], rtol=1e-6, atol=1e-6)


@both
def test_halves_in_branches_and_functions(name: str, tmp_path: Path) -> None:
    number, kind, half = TYPES[name]
    from onnx import helper, numpy_helper

    body = [
        helper.make_graph(
            [node("Constant", [], [f"k{i}"], value=numpy_helper.from_array(np.array(value, kind))),
             node("Mul", ["x", f"k{i}"], [f"m{i}"])],
            f"branch{i}",
            [],
            [helper.make_tensor_value_info(f"m{i}", number, [3])],
        )
        for i, value in enumerate((2, 3))
    ]  # fmt: skip
    made = model(
        [node("If", ["c"], ["y"], then_branch=body[0], else_branch=body[1])],
        {"c": [], "x": [3]},
        ["y"],
        types={"c": TensorProto.BOOL, "x": number, "y": number},
    )
    source = read(made, tmp_path)
    _, coarsest, halves = widen_halves(made)
    assert (
        coarsest is half
        and halves == {"x": half, "y": half}
        and made.graph.input[1].type.tensor_type.elem_type == number
    )
    assert source.expected is not None
    np.testing.assert_array_equal(run(source)[0], source.expected[0])


def test_models_of_float32_are_not_copied() -> None:
    made = model([node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"])
    assert widen_halves(made)[0] is made

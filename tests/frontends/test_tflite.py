"""`.tflite` files: every operator as LiteRT's reference kernels compute it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.tflite_cases import Case, X
from tests.frontends.tflite_files import Q, SubgraphWriter
from tests.frontends.tflite_move_cases import CASES

from baretorch.frontends import load
from baretorch.frontends.lowering import Lowering, known_value
from baretorch.frontends.tflite.table import NOT_INT8, TABLE
from baretorch.ir.graph import Builder, DType
from baretorch.ops.elementwise import Add
from baretorch.passes.layerwise import compare_layers
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import lower

DATA = Path(__file__).parent / "data"


def test_every_operator_has_a_case() -> None:
    covered = {name for name in TABLE for c in CASES if c.name == name or c.name.startswith(f"{name}_")}
    assert covered == set(TABLE)


def test_what_is_listed_as_int8_has_a_case_in_int8() -> None:
    files = {path.name for path in DATA.glob("*_int8.tflite")}
    assert "lstm_int8.tflite" in files  # which LiteRT's schema makes hard to write by hand
    found = {name for name in TABLE for c in CASES if re.match(f"{name}(_[a-z]+)?_int8", c.name)}
    assert found | {"UNIDIRECTIONAL_SEQUENCE_LSTM"} == set(TABLE) - NOT_INT8


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_an_operator_is_litert_s(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(case.bytes())
    source = load(str(file))
    assert source.library == "LiteRT", source.notes
    graph = lower(source).graph
    if "int8" in case.name:
        assert not float_layers(graph)
    assert source.layers is not None
    for layer in compare_layers(source.library, source.layers()).layers:
        assert layer.largest <= (case.lsb if layer.quantized else case.relative), layer


def test_what_is_made_of_constants_is_computed_once() -> None:
    """Each of these reads the one before twice: as a tree, there are 2^60 of them."""
    g = Lowering(Builder("doubling"))
    name = g.b.const("one", np.ones(2, np.float32))
    for _ in range(60):
        name = g.b.add(Add(), name, name)
    value = known_value(g, name)
    assert value is not None and value.tolist() == [2.0**60] * 2
    x = g.b.input("x", (2,), DType.FLOAT32)
    assert known_value(g, g.b.add(Add(), x, name)) is None


def test_scales_of_a_dimension_that_a_bias_does_not_have_are_read_with_a_note(tmp_path: Path) -> None:
    """Converters of 2019 state 3 for biases. LiteRT gets a corrected copy."""

    def written(g: SubgraphWriter) -> None:
        scales = [0.01, 0.02, 0.03]
        weight, bias = (
            g.const(np.ones((3, 2)), Q(scales)),
            g.const(np.ones(3), Q([0.04 * s for s in scales], 0, "int32")),
        )
        g.graph.tensors[bias].quantization.quantizedDimension = 3
        g.output(g.op("FULLY_CONNECTED", [g.input((1, 2), X), weight, bias], (1, 3), X, "FullyConnectedOptions"))

    path = tmp_path / "model.tflite"
    path.write_bytes(Case("bias", written).bytes())
    source = load(str(path))
    assert source.library == "LiteRT"
    assert source.notes == (
        "c1 int32[3]: the file states scales of dimension 3, and they are read as those of dimension 0",
    )
    assert source.layers is not None
    assert compare_layers(source.library, source.layers()).largest <= 1


@pytest.mark.parametrize("scale", [1e-35, 1e-30, 1e-12])
def test_a_channel_with_a_tiny_scale_is_litert_s(scale: float, tmp_path: Path) -> None:
    """Weights that training has made 0 have such scales."""

    def written(g: SubgraphWriter) -> None:
        weight = np.array([[0.5, -0.25], [100 * scale, -127 * scale]])
        scales = [0.01, scale]
        bias = g.const(np.array([0.1, 1000 * 0.04 * scale]), Q([0.04 * s for s in scales], 0, "int32"))
        inputs = [g.input((1, 2), X), g.const(weight, Q(scales)), bias]
        g.output(g.op("FULLY_CONNECTED", inputs, (1, 2), X, "FullyConnectedOptions"))

    path = tmp_path / "model.tflite"
    path.write_bytes(Case("tiny", written).bytes())
    source = load(str(path))
    assert source.library == "LiteRT", source.notes
    assert not float_layers(lower(source).graph)
    assert source.layers is not None
    assert compare_layers(source.library, source.layers()).largest <= 1


def test_an_activation_with_a_tiny_scale_is_litert_s(tmp_path: Path) -> None:
    x, y = Q(1e-35, 3), Q(2e-35, -5)
    path = tmp_path / "model.tflite"
    build = lambda g: g.output(g.op("ADD", [g.input((1, 9), x), g.input((1, 9), y)], (1, 9), y, "AddOptions"))  # noqa: E731
    path.write_bytes(Case("tiny", build).bytes())
    source = load(str(path))
    assert source.library == "LiteRT", source.notes
    assert source.layers is not None
    assert compare_layers(source.library, source.layers()).largest <= 1

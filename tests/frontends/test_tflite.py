"""`.tflite` files: every operator as LiteRT's reference kernels compute it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.tflite_cases import Case
from tests.frontends.tflite_move_cases import CASES

from baretorch.frontends import load
from baretorch.frontends.lowering import Lowering, known_value
from baretorch.frontends.tflite.table import NOT_INT8, TABLE
from baretorch.ir.graph import Builder, DType
from baretorch.ir.layerwise import compare_layers
from baretorch.ops.elementwise import Add
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

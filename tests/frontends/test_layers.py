"""A new frontend is one file and one row: a toy of it goes all the way, from the command line and from Python."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.program import baretorch as command
from tests.cli.program import check_golden
from tests.frontends.layers import load_layers

import baretorch
from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.passes.equivalence import WrongStep
from baretorch.passes.to_int8 import float_layers
from baretorch.targets.boards import load_board

SRC = Path(baretorch.__file__).parent
FLOAT: list[Any] = [
    {"image": [1, 2, 3, 4]},
    {"relu": None},
    {"flatten": None},
    {"linear": {"rows": [[(i * j) % 7 - 3 for j in range(24)] for i in range(5)]}},
    {"relu": None},
]
INT8: list[Any] = [
    {"image": [1, 2, 3, 4]},
    {"round": 0.03},
    {"flatten": None},
    {"linear": {"rows": [[(i * j) % 255 - 127 for j in range(24)] for i in range(5)], "scale": [0.01] * 5}},
    {"round": 0.04},
]


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(frontends.KINDS, ".layers", load_layers)
    Path("net.layers").write_text(json.dumps(FLOAT))
    Path("small.layers").write_text(json.dumps(INT8))


@pytest.mark.usefixtures("row")
def test_it_compiles_and_runs_and_its_answer_is_checked() -> None:
    done = command("run", "net.layers", "--board", "host", "--json")
    assert done.code == 0, done.err
    facts = done.json()
    assert facts["reference"] == "NumPy" and facts["max_error"] < 1e-5 and facts["warnings"] == []
    source = frontends.load("net.layers")
    assert source.expected is not None
    np.testing.assert_allclose(facts["outputs"][0], source.expected[0], rtol=1e-5)
    assert float(np.abs(source.expected[0]).max()) > 1


@pytest.mark.usefixtures("row")
def test_in_python_it_takes_what_the_caller_has() -> None:
    """The image is stored channels last; the caller's array is NCHW."""
    rng = np.random.default_rng(1)
    image = rng.standard_normal((1, 4, 2, 3)).astype(np.float32)
    weight = np.array(FLOAT[3]["linear"]["rows"], np.float32)
    model = baretorch.compile("net.layers", board="host")
    try:
        want = np.maximum(np.maximum(image, 0).reshape(1, -1) @ weight.T, 0)
        np.testing.assert_allclose(np.asarray(model.run(image)), want, rtol=1e-5)
        with pytest.raises(CompileError, match="input 'image' has the wrong shape"):
            model.run(image.transpose(0, 2, 3, 1))
    finally:
        model.close()
    names = {node.op.name for node in model.compiled.graph.nodes}
    assert names == {"clamp", "reshape", "linear"}, "the layer's columns are in the image's order"


@pytest.mark.usefixtures("row")
def test_its_int8_scales_are_in_the_graph() -> None:
    source = frontends.load("small.layers")
    assert source.graph.is_quantized and not frontends.load("net.layers").graph.is_quantized
    done = command("run", "small.layers", "--board", "host", "--io", "int8", "--json")
    assert done.code == 0, done.err
    facts = done.json()
    assert (facts["dtype"], facts["float_layers"]) == ("int8", [])
    assert source.expected is not None
    largest = float(np.abs(source.expected[0]).max())
    assert largest < 127 * 0.04, "nothing is cut off"
    assert 0 < facts["max_error"] < 0.2 < largest / 10


@pytest.mark.usefixtures("row")
def test_it_is_inspected_without_an_aten_program() -> None:
    facts = command("inspect", "net.layers", "--json").json()
    assert (facts["stages"]["source"], facts["stages"]["graph"]) == (None, 5)
    assert "ATen" not in command("inspect", "net.layers").out
    assert "orders (0, 2, 3, 1) -> (0, 1)" in command("inspect", "net.layers", "--stage", "graph").out
    refused = command("inspect", "net.layers", "--stage", "aten")
    assert refused.code == 1
    check_golden("error_stage_aten", refused.err)


@pytest.mark.usefixtures("row")
def test_it_is_quantized_as_any_model() -> None:
    rng = np.random.default_rng(0)
    samples = [(rng.standard_normal((1, 4, 2, 3)).astype(np.float32),) for _ in range(8)]
    model = baretorch.compile("net.layers", board="host", calibration=samples)
    assert not float_layers(model.compiled.graph) and model.warnings == ()


@pytest.mark.usefixtures("row")
def test_its_own_errors_and_those_of_the_table() -> None:
    Path("odd.layers").write_text(json.dumps([*FLOAT, {"conv": {}}]))
    assert "'conv' is no layer" in command("run", "odd.layers", "--board", "host").err
    assert "calibration: " in command("run", "net.layers", "--board", "host", "--int8").out
    Path("net.other").write_text("")
    assert (
        "need  a .py, .pt2, .pte, .onnx, .tflite or .layers file" in command("run", "net.other", "--board", "host").err
    )


@pytest.mark.usefixtures("row")
def test_its_answers_are_the_net_under_the_passes() -> None:
    source = frontends.load("net.layers")
    other = Path("small.layers")
    other.write_text(json.dumps([*FLOAT[:1], *FLOAT[2:]]))  # without the first relu
    wrong = replace(source, graphs=frontends.load(str(other)).graphs)
    with pytest.raises(WrongStep, match="the frontend changed"):
        pipeline.compile_source(wrong, load_board("host"))


def test_no_other_module_knows_aten_programs() -> None:
    """Only frontends/ has AtenPrograms and lowers them; quantize/ works on torch's programs, and needs neither."""
    found, programs = [], "baretorch.frontends.aten.program"
    for path in sorted(SRC.rglob("*.py")):
        if path.is_relative_to(SRC / "frontends"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            if module == programs or {"to_graph", programs} & set(names):
                found.append(str(path.relative_to(SRC)))
    assert found == []

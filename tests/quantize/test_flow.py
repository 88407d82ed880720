"""--int8 from the module to the emulated chip, and what calibration refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import pipeline
from baretorch.errors import CompileError, InternalError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, interpret
from baretorch.ir.io import store_inputs
from baretorch.machines.host_program import on_host
from baretorch.measure.facts import compare
from baretorch.ops.functions import Tanh
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.move import Slice
from baretorch.options import Io, Options
from baretorch.passes.equivalence import WrongStep
from baretorch.passes.order import FLOAT_PASSES, Pass, run_passes
from baretorch.pipeline import LoweredModel
from baretorch.quantize import quantize
from baretorch.quantize.watch import in_numpy, watching
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model, mlp

X = torch.tensor([[0.5, -1.0, 0.25, 2.0]])


def samples() -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(1, 4, generator=generator),) for _ in range(16)]


def int8(data: Iterable[Any] | None, *keep_float: str) -> LoweredModel:
    return int8_model(from_module(mlp(), (X,), "mlp"), data, keep_float=keep_float)


@pytest.mark.parametrize("io", ["float", "int8"])
@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an385-v6m"])
def test_the_chip_computes_the_int8_model(board: str, io: str, tmp_path: Path) -> None:
    compiled = compile_model(int8(samples()), load_board(board), Options(io=Io(io)))
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    want = interpret(compiled.graph, store_inputs(compiled.graph, compiled.source.examples)).values()
    assert all(np.array_equal(a, b) for a, b in zip(facts.run.outputs, want, strict=True)), "bit for bit"
    assert facts.max_lsb is not None and facts.max_lsb <= 2.01, "one step a layer from rounded float"
    assert facts.max_error < 0.1 * facts.largest
    out = facts.to_json()
    assert (out["dtype"], out["float_layers"], out["warnings"]) == ("int8", [], [])
    expected = DType.INT8 if io == "int8" else DType.FLOAT32
    assert {compiled.graph[n].dtype for n in (*compiled.graph.inputs, *compiled.graph.outputs)} == {expected}


@pytest.mark.parametrize(("zero", "wrong"), [(1, False), (6, True), (-6, True)])
def test_a_wrong_int8_layer_is_an_error(zero: int, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step is rounding. The output's zero point of each linear layer is changed, as a fault of its rule would."""

    def damaged(graph: Graph, passes: Sequence[Pass]) -> list[tuple[str, Graph]]:
        *before, (name, made) = run_passes(graph, passes)
        nodes = tuple(
            replace(n, op=replace(n.op, zero=n.op.zero + zero)) if isinstance(n.op, QLinear) else n for n in made.nodes
        )
        return [*before, (name, replace(made, nodes=nodes))]

    monkeypatch.setattr(quantize, "run_passes", damaged)
    with pytest.raises(WrongStep, match="to_int8 changed what 0 computes") if wrong else nullcontext():
        int8(samples())


def test_a_layer_left_in_float_is_named() -> None:
    compiled = compile_model(int8(samples(), "2"), load_board("mps2-an386"))
    from baretorch.passes.to_int8 import float_layers

    assert len(float_layers(compiled.graph)) == 1


def test_random_calibration_is_a_named_warning() -> None:
    assert [w.split(":")[0] for w in int8(None).warnings] == ["calibration"]
    assert int8(samples()).warnings == ()


def test_odd_example_inputs_are_a_named_warning() -> None:
    """They hide differences in float, and int8 cannot represent them. That does not depend on the frontend."""
    model = int8(samples())
    odd = replace(model, source=replace(model.source, examples=(np.full((1, 4), np.nan, np.float32),)))
    assert [w.split(", ")[-1] for w in replace(odd, quantization=None).warnings] == [
        "which hide differences between results"
    ]
    assert "which int8 cannot represent" in odd.warnings[0] and len(odd.warnings) == 1
    assert not replace(model, quantization=None).warnings


def test_constant_calibration_is_a_named_warning() -> None:
    warning, *_ = int8([(torch.ones(1, 4),)] * 3).warnings
    assert warning == "calibration: all 3 samples are constant, so scales do not fit real inputs"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "calibration: calibration() returns no samples"),
        ([(torch.zeros(1, 5),)], "calibration: sample 0 differs in shape or type from inputs()"),
        ([(torch.full((1, 4), torch.nan),)], "calibration: sample 0 has NaN or infinite values"),
        (["abc"], "calibration: sample 0 differs in shape or type from inputs()"),
        (
            [(torch.full((1, 4), 1e35),)],
            "calibration: an input has values beyond 1e+30, for which there is no int8 scale",
        ),
    ],
)
def test_calibration_that_cannot_be(data: list[Any], text: str) -> None:
    with pytest.raises(CompileError) as caught:
        int8(data)
    assert caught.value.what == text


def test_an_index_that_names_nothing_is_reported() -> None:
    net = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)).eval()
    source = from_module(net, (torch.zeros(1, 3, dtype=torch.int64),), "net")
    assert not int8_model(source, [(torch.tensor([[0, 4, -5]]),)]).graph[source.graph.inputs[0]].quant
    with pytest.raises(CompileError) as caught:
        int8_model(source, [(torch.tensor([[0, 1, 4]]),), (torch.tensor([[0, 5, 1]]),)])
    assert caught.value.render() == (
        "error: calibration: sample 1 has the index 5, and there are 5 entries\n  at    0\n  need  -5 to 4"
    )


def test_a_program_that_died_is_our_fault() -> None:
    graph = run_passes(from_module(mlp(), (X,), "net").graph, FLOAT_PASSES)[-1][1]
    with on_host(graph) as run:
        run._process.kill()  # type: ignore[attr-defined]
        run._process.wait()  # type: ignore[attr-defined]
        with pytest.raises(InternalError, match="ended with code -9"):
            run([np.zeros((1, 4), np.float32)])


def test_an_unknown_layer_to_keep_is_named() -> None:
    with pytest.raises(CompileError) as caught:
        int8(samples(), "7")
    assert caught.value.what == "--keep-float 7: no such layer"


def test_from_python() -> None:
    """compile() quantizes with calibration=, runs in real numbers whatever the image takes, and evaluates."""
    model = baretorch.compile(mlp(), (X,), board="mps2-an386", calibration=samples(), io="int8")
    assert model.compiled.graph[model.compiled.graph.inputs[0]].dtype is DType.INT8
    (want,) = model.compiled.source.expected or ()
    found = model.evaluate(lambda run: {"error": float(np.abs(run(X) - want).max())})
    model.close()
    assert 0 < found["error"] < 0.1 * float(np.abs(want).max())


def test_from_python_with_a_file(tmp_path: Path) -> None:
    """A model file brings its calibration data, unless other data is given."""
    text = (Path(__file__).parents[1] / "cli" / "models" / "judged.py").read_text()
    (tmp_path / "net.py").write_text(text)
    own = baretorch.compile(tmp_path / "net.py", board="host", int8=True)
    with (
        pytest.warns(UserWarning, match="calibration: numbers of input reach 200, but .* are both scaled alike?"),
        pytest.warns(UserWarning, match="accuracy: the int8 result to the example inputs"),
    ):
        other = baretorch.compile(tmp_path / "net.py", board="host", calibration=[(100 * X,)])
    scales = [m.compiled.graph["input"].quant.scale[0] for m in (own, other)]
    assert scales[1] > 10 * scales[0]


def test_a_tensor_and_its_slice_are_both_watched() -> None:
    """Outputs of a program may share memory: each has its own values, so that no false alarm follows."""
    b = Builder("m")
    x = b.input("x", (1, 4, 8), DType.FLOAT32)
    y = b.add(Tanh(), x, name="y")
    z = b.add(Slice(1, 0, 1), y, name="z")
    graph = b.graph([x], [b.add(Tanh(), z, name="end")])
    data = np.random.default_rng(0).standard_normal((1, 4, 8)).astype(np.float32)
    names = ["x", "y", "z", "end"]
    with watching(graph, names, on_host) as here, watching(graph, names, in_numpy) as ref:
        found, right = here([data]), ref([data])
        for name in right:
            np.testing.assert_allclose(found[name], right[name], atol=1e-6)

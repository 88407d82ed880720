"""Whole `.tflite` models: those that are committed, and in the slow suite what converters make of the zoo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.program import baretorch as command
from tests.frontends.environments import KERAS, LITERT_TORCH, convert
from tests.frontends.tflite_files import Q, SubgraphWriter, TfliteWriter

import baretorch
from baretorch.errors import CompileError
from baretorch.frontends import load
from baretorch.frontends.tflite import litert
from baretorch.ir.graph import DType, interpret
from baretorch.ir.io import real_outputs
from baretorch.ir.io import store_inputs as stored_inputs
from baretorch.options import Io
from baretorch.passes.layerwise import compare_layers
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import lower, with_io

DATA = Path(__file__).parent / "data"
ZOO = Path(__file__).parents[2] / "zoo"
FILES = sorted(p.name for p in DATA.glob("*.tflite"))


def judge(file: Path) -> None:
    """No float layer, int8 at the border, and at most one step from LiteRT in each layer."""
    source = load(str(file))
    graph = lower(source).graph
    assert float_layers(graph) == []
    assert {t.dtype for t in graph.of((*graph.inputs, *graph.outputs))} == {DType.INT8}
    assert source.layers is not None
    beside = compare_layers(source.library, source.layers())
    assert len(beside.quantized) == source.calls
    assert beside.largest <= 1 and beside.differ <= 0.05 * beside.elements, beside.words


@pytest.mark.parametrize("name", [n for n in FILES if "int8" in n])
def test_int8_models_are_litert_s_layer_by_layer(name: str) -> None:
    judge(DATA / name)


@pytest.mark.parametrize("name", FILES)
def test_an_image_answers_as_litert_does(name: str) -> None:
    """Twice, as those with state answer something else the second time."""
    facts = command("run", str(DATA / name), "--board", "host", "--json").json()
    assert facts["reference"] == "LiteRT"
    if "int8" in name:
        assert facts["max_lsb"] <= 2 and facts["layerwise"]["max_lsb"] <= 1
    else:
        assert facts["max_error"] <= 1e-5 and facts["layerwise"] is None


def test_a_layer_has_one_name_of_those_that_the_converter_joined() -> None:
    graph = load(str(DATA / "kws_int8.tflite")).graph
    layers = {graph[node.outputs[0]].origin.path for node in graph.nodes}
    assert "torch.nn.modules.container.Sequential/torch.nn.modules.activation.ReLU_3" in layers
    assert not [path for path in layers if ";" in path]


def test_a_model_with_state_goes_on_where_it_was() -> None:
    source = load(str(DATA / "lstm.tflite"))
    assert source.expected is not None and source.expected_again is not None
    assert np.abs(source.expected[0] - source.expected_again[0]).max() > 1e-3
    assert len(source.graph.state) == 4


def test_a_weight_that_lost_its_scale(tmp_path: Path) -> None:
    data = bytearray((DATA / "lstm_int8.tflite").read_bytes())
    data[9547:9549] = 0, 0  # the offset of a scale
    (tmp_path / "lstm.tflite").write_bytes(data)
    with pytest.raises(CompileError, match="a weight has another type than float32, and no scale"):
        load(str(tmp_path / "lstm.tflite"))


def test_layers_are_called_as_their_tensors_are() -> None:
    graph = load(str(DATA / "lstm.tflite")).graph
    assert "sequential/dense/MatMul1" in {t.origin.path for t in graph.tensors.values()}


def test_without_litert_the_graph_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "is_installed", lambda: False)
    source = load(str(DATA / "lstm_int8.tflite"))
    assert source.expected is None and source.layers is None
    assert any('pip install "baretorch[tflite]"' in note for note in source.notes)


def test_weights_that_alone_are_int8_are_float_with_a_warning(tmp_path: Path) -> None:
    writer = TfliteWriter()
    g, weight = writer.main, np.linspace(-1, 1, 48, dtype=np.float32).reshape(6, 8)
    inputs = [g.input((3, 8)), g.const(weight, Q(1 / 127)), -1]
    g.output(g.op("FULLY_CONNECTED", inputs, (3, 6), "float32", "FullyConnectedOptions"))
    (tmp_path / "hybrid.tflite").write_bytes(writer.bytes())
    source = load(str(tmp_path / "hybrid.tflite"))
    assert source.expected is None and any("weights are int8" in note for note in source.notes)
    graph = lower(source).graph
    assert [n.op.name for n in graph.nodes] == ["linear"]
    assert graph[graph.nodes[0].inputs[1]].quant is None


def test_a_weight_that_many_layers_read_is_no_damage(tmp_path: Path) -> None:
    """An unrolled recurrent layer reads the same weight again for each layer that is compared."""
    writer = TfliteWriter()
    g, q = writer.main, Q(0.04)
    x, weight = g.input((1, 64), q), g.const(np.eye(64, dtype=np.float32), Q(1 / 127))
    for _ in range(12):
        x = g.op("FULLY_CONNECTED", [x, weight, -1], (1, 64), q, "FullyConnectedOptions")
    g.output(x)
    (tmp_path / "shared.tflite").write_bytes(writer.bytes())
    source = load(str(tmp_path / "shared.tflite"))
    assert source.layers is not None
    for _ in range(2):
        assert len([*source.layers()]) == 12


def test_int8_is_refused_for_a_model_that_has_it() -> None:
    run = command("run", str(DATA / "lstm_int8.tflite"), "--board", "host", "--int8")
    assert run.code == 1 and "already" in run.err


def test_a_float_model_is_quantized_with_the_data_next_to_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "lstm.tflite").write_bytes((DATA / "lstm.tflite").read_bytes())
    np.savez(
        tmp_path / "calibration.npz", serving_default_args_0_0=rng.standard_normal((16, 1, 16, 8)).astype(np.float32)
    )
    np.savez(tmp_path / "inputs.npz", serving_default_args_0_0=rng.standard_normal((1, 1, 16, 8)).astype(np.float32))
    facts = command("run", str(tmp_path / "lstm.tflite"), "--board", "host", "--int8", "--json").json()
    assert (facts["dtype"], facts["float_layers"], facts["warnings"]) == ("int8", [], [])
    assert facts["reference"] == "LiteRT" and facts["max_error"] < 0.02
    assert facts["layerwise"] is None, "LiteRT has no int8 layers of this model"


def test_from_python() -> None:
    model = baretorch.compile(str(DATA / "lstm_int8.tflite"), board="host")
    source = load(str(DATA / "lstm_int8.tflite"))
    assert source.expected is not None
    answer = model.run(*source.examples)
    assert np.abs(np.asarray(answer) - source.expected[0]).max() <= 2 / 256


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kws", "ic", "vww", "ad"])
def test_litert_torch_s_int8_costs_what_ours_does(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.tflite"
    convert("litert.py", LITERT_TORCH, str(ZOO / f"{name}.py"), str(file), "--int8")
    judge(file)
    theirs = command("run", str(file), "--board", "mps2-an386", "--json").json()
    ours = command("run", str(ZOO / f"{name}.py"), "--board", "mps2-an386", "--int8", "--io", "int8", "--json").json()
    assert theirs["float_layers"] == []
    assert theirs["instructions"] <= 1.03 * ours["instructions"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kws", "ic", "vww", "ad", "mobilenet_v2", "unet_small", "tcn", "vit_tiny", "lstm"])
def test_litert_torch_s_float_models_are_litert_s(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.tflite"
    convert("litert.py", LITERT_TORCH, str(ZOO / f"{name}.py"), str(file))
    facts = command("run", str(file), "--board", "host", "--json").json()
    assert facts["reference"] == "LiteRT" and facts["warnings"] == []


@pytest.mark.slow
def test_keras_s_fused_lstm(tmp_path: Path) -> None:
    convert("keras.py", KERAS, str(tmp_path / "lstm.tflite"), "--int8")
    judge(tmp_path / "lstm.tflite")


def test_float_at_the_border_of_an_int8_file() -> None:
    """`--io float` is what the caller has then; without --io it is what the file says."""
    source = load(str(DATA / "kws_int8.tflite"))
    (stored,) = (graph := lower(source).graph).inputs
    made = with_io(graph, Io.FLOAT)
    assert {t.dtype for t in made.of((*made.inputs, *made.outputs))} == {DType.FLOAT32}
    assert made.inputs == (stored,) and with_io(made, Io.FLOAT) is made and with_io(graph, None) is graph
    (have,) = interpret(made, source.examples).values()
    (want,) = real_outputs(graph, list(interpret(graph, stored_inputs(graph, source.examples)).values()))
    np.testing.assert_array_equal(have, want)


def shorts(g: SubgraphWriter) -> None:
    """Activations of 16 bits and weights of 8: convolutions, of which one is depthwise, a sum, and a linear layer."""
    rng = np.random.default_rng(0)

    def weight(shape: tuple[int, ...], q: Q) -> int:
        return g.const(rng.standard_normal(shape).astype(np.float32) * 0.4, q)

    a, b, scales = Q(0.0003, 0, "int16"), Q(0.0008, 0, "int16"), [0.02, 0.015, 0.01, 0.02]
    bias = g.const(rng.standard_normal(4) * 0.1, Q([0.0003 * s for s in scales], 0, "int64"))
    taps, step = weight((4, 3, 3, 3), Q(scales)), {"strideW": 2, "strideH": 2, "fusedActivationFunction": 1}
    x = g.op("CONV_2D", [g.input((1, 8, 8, 3), a), taps, bias], (1, 4, 4, 4), b, "Conv2DOptions", **step)
    own, step = weight((1, 3, 3, 4), Q([0.01] * 4, axis=3)), {"strideW": 1, "strideH": 1, "depthMultiplier": 1}
    y = g.op("DEPTHWISE_CONV_2D", [x, own], (1, 4, 4, 4), b, "DepthwiseConv2DOptions", **step)
    total = g.op("ADD", [x, y], (1, 4, 4, 4), b, "AddOptions")
    flat = g.op("RESHAPE", [total, g.const(np.int32([1, 64]))], (1, 64), b)
    g.output(g.op("FULLY_CONNECTED", [flat, weight((5, 64), Q(0.01))], (1, 5), b, "FullyConnectedOptions"))


def test_activations_of_16_bits(tmp_path: Path) -> None:
    """Every layer is at most one step from LiteRT."""
    writer = TfliteWriter()
    shorts(writer.main)
    (tmp_path / "net.tflite").write_bytes(writer.bytes())
    source = load(str(tmp_path / "net.tflite"))
    graph = lower(source).graph
    assert {t.dtype for t in graph.of((*graph.inputs, *graph.outputs))} == {DType.INT16}
    names = [node.op.name for node in graph.nodes]
    assert names.count("qconv2d16") == 3 and names.count("quantize16") == 0
    assert float_layers(graph) == []
    assert source.layers is not None
    beside = compare_layers(source.library, source.layers())
    assert len(beside.quantized) == source.calls and beside.elements > 200
    assert beside.largest <= 1 and beside.differ <= 0.1 * beside.elements, beside.words
    facts = command("run", str(tmp_path / "net.tflite"), "--board", "host", "--out", str(tmp_path), "--json").json()
    assert facts["max_error"] <= 0.0017 and facts["warnings"] == []


def test_other_operators_of_16_bits_are_float_with_a_warning(tmp_path: Path) -> None:
    writer, q = TfliteWriter(), Q(0.0003, type="int16")
    g = writer.main
    g.output(g.op("ABS", [g.input((2, 8), q)], (2, 8), q))
    (tmp_path / "net.tflite").write_bytes(writer.bytes())
    facts = command("run", str(tmp_path / "net.tflite"), "--board", "host", "--out", str(tmp_path), "--json").json()
    assert facts["max_error"] == 0 and any("abs" in warning for warning in facts["warnings"])

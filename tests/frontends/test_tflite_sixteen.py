"""`.tflite` files with activations of 16 bits: every operator as LiteRT's reference kernels compute it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.frontends.test_tflite_errors import file
from tests.frontends.tflite_files import Q
from tests.frontends.tflite_move_cases import CASES
from tests.frontends.tflite_sixteen_cases import EXACT, FAR, GENERAL, INT8, LONG, ONE_STEP, binary, svdf_of_bytes, unary

from baretorch.errors import CompileError
from baretorch.frontends import load
from baretorch.frontends.tflite.litert import LiteRt
from baretorch.frontends.tflite.lowering import is_raw
from baretorch.frontends.tflite.schema import TfTensor, read_model
from baretorch.frontends.tflite.source import read_tflite
from baretorch.ir.graph import DType, interpret
from baretorch.passes.layerwise import compare_layers
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import lower


def outputs_of(path: Path) -> list[TfTensor]:
    subgraph = read_model(path.read_bytes()).subgraphs[0]
    return [subgraph.tensors[i] for i in subgraph.outputs]


@pytest.mark.parametrize("name", [*EXACT, *ONE_STEP])
def test_16_bits_are_litert_s(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(file(EXACT.get(name) or ONE_STEP[name]))
    source = load(str(path))
    assert source.library == "LiteRT", source.notes
    graph = lower(source).graph
    assert not float_layers(graph) or name in ("average_pool_relu", "cast")
    assert all(t.dtype is not DType.FLOAT32 for t in graph.of(graph.inputs))
    scaled = [t.type in ("int8", "int16") and not is_raw(t) for t in outputs_of(path)]
    assert [t.is_quantized for t in graph.of(graph.outputs)] == scaled
    assert source.layers is not None
    for layer in compare_layers(source.library, source.layers()).layers:
        assert layer.largest <= (0 if name in EXACT else 1), layer


def test_an_int16_zero_point_is_refused_where_it_counts() -> None:
    with pytest.raises(CompileError, match="ADD: an int16 activation with a zero point is not supported"):
        read_tflite(file(binary("ADD", FAR, FAR, FAR, "AddOptions", **GENERAL)), "model")
    with pytest.raises(CompileError, match="QUANTIZE: float32 to int32 is not supported"):
        read_tflite(file(unary("QUANTIZE", Q(1.0, 0, "float32"), LONG, "QuantizeOptions")), "model")
    with pytest.raises(CompileError, match="this result with a zero point is not supported"):
        read_tflite(file(unary("SOFTMAX", INT8, FAR, "SoftmaxOptions", beta=1.0)), "model")


def test_int32_is_rescaled_to_int32() -> None:
    """LiteRT has no kernel for that; its rule for all other integers is the same. It makes 1 of a third: 2/3 is rounded
    to 1, and so is half of that."""
    graph = read_tflite(file(unary("QUANTIZE", LONG, Q(0.0003, -4, "int32"), "QuantizeOptions")), "model").graph
    (node,) = graph.nodes
    (y,) = node.op.reference(np.array([50, 51, 52, 54, 350, -250, 100_049], np.int32))
    assert y.tolist() == [-4, -3, -3, -2, 96, -104, 33_329]


def test_svdf_with_a_state_of_8_bits_is_that_for_microcontrollers(tmp_path: Path) -> None:
    """The numbers are those of LiteRT for microcontrollers. LiteRT itself would write beyond such a state, so it is not
    asked."""
    path = tmp_path / "model.tflite"
    path.write_bytes(file(svdf_of_bytes))
    source = load(str(path))
    assert source.library != "LiteRT" and "LiteRT for microcontrollers computes it" in source.notes[0]
    graph, memory = lower(source).graph, dict[str, np.ndarray]()
    assert not float_layers(graph)
    calls = (
        ((9000, -12000, 300), (-91, -98), (19223, 13546)),
        ((32767, 32767, -32768), (-128, -125), (15158, 17611)),
        ((0, 0, 0), (-128, -121), (13546, 19223)),
        ((-5000, 15000, 22000), (-128, -128), (16384, 16384)),
        ((-32768, 20000, -9000), (-89, -117), (26286, 6482)),
        ((123, -456, 789), (-86, -107), (24274, 8495)),
    )
    for x, sums, shares in calls:
        got = interpret(graph, (np.array([x], np.int16),), memory=memory)
        assert [tuple(got[name][0]) for name in graph.outputs] == [sums, shares]


def test_svdf_keeps_litert_s_state_from_run_to_run(tmp_path: Path) -> None:
    """The comparison of single layers only covers states of zeros."""
    path = tmp_path / "model.tflite"
    path.write_bytes(next(c for c in CASES if c.name == "SVDF_int8").bytes())
    graph, theirs, memory = lower(load(str(path))).graph, LiteRt(path.read_bytes(), ()), dict[str, np.ndarray]()
    assert graph[graph.outputs[0]].is_quantized
    plain = read_model(path.read_bytes()).subgraphs[0]
    rng = np.random.default_rng(0)
    for _ in range(12):
        x = rng.integers(-128, 128, (1, 5)).astype(np.int8)
        want = theirs.run({plain.inputs[0]: x}, plain.outputs)
        got = interpret(graph, (x,), memory=memory)
        assert np.array_equal(got[graph.outputs[0]], want[plain.outputs[0]])

"""int8 LSTMs are LiteRT's own, bit for bit: a recurrent network makes much of every step that is rounded otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as fb  # type: ignore[import-untyped]

from baretorch.frontends import load
from baretorch.frontends.tflite import litert
from baretorch.ir.graph import interpret
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import lower

FILE = Path(__file__).parent / "data" / "lstm_int8.tflite"
FROM_INPUT, FROM_HIDDEN, BIASES, HIDDEN, CELL = (
    range(1, 5),
    range(5, 9),
    range(12, 16),
    18,
    19,
)  # inputs of the operator

Inputs = Callable[[np.random.Generator, tuple[int, ...], float, int], np.ndarray]
INPUTS: Mapping[str, Inputs] = {
    "normal": lambda rng, shape, scale, zero: np.rint(rng.standard_normal(shape) / scale) + zero,
    "uniform": lambda rng, shape, scale, zero: rng.integers(-128, 128, shape),
    "extreme": lambda rng, shape, scale, zero: rng.choice([-128, 127], shape),
    "zeros": lambda rng, shape, scale, zero: np.full(shape, zero),
}


def edited(
    rng: np.random.Generator,
    time: int = 20,
    batch: int = 1,
    width: int = 8,
    units: int = 20,
    x: tuple[float, int] = (0.03, -7),
    weights: float = 0.014,
    hidden: tuple[float, int] = (0.00776, 0),
    cell: float = 2.0**-12,
    clip: float = 10.0,
    time_major: bool = False,
) -> bytes:
    """The committed file's first layer alone, with other sizes, scales and weights."""
    model = fb.ModelT.InitFromPackedBuf(FILE.read_bytes(), 0)
    model.signatureDefs = model.metadata = None
    graph = model.subgraphs[0]
    (op, *_) = graph.operators
    sizes = (time, batch) if time_major else (batch, time)

    def change(index: int, shape: tuple[int, ...], scale: float, zero: int = 0, data: np.ndarray | None = None) -> None:
        t = graph.tensors[index]
        t.shape, t.shapeSignature = list(shape), None
        t.quantization.scale, t.quantization.zeroPoint = [scale], [zero]
        if data is not None:
            buffer = fb.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            model.buffers.append(buffer)
            t.buffer = len(model.buffers) - 1

    change(op.inputs[0], (*sizes, width), *x)
    for index in (op.outputs[0], op.inputs[HIDDEN], op.intermediates[4]):
        change(index, (*sizes, units) if index == op.outputs[0] else (batch, units), *hidden)
    change(op.inputs[CELL], (batch, units), cell)
    for gates, inner in ((FROM_INPUT, width), (FROM_HIDDEN, units)):
        for i in gates:
            bytes_ = np.clip(rng.normal(0, 42, (units, inner)), -127, 127).astype(np.int8)
            change(op.inputs[i], (units, inner), weights * rng.uniform(0.3, 3), 0, bytes_)
    for i, gate in zip(BIASES, FROM_INPUT, strict=True):
        scale = np.float32(x[0]) * np.float32(graph.tensors[op.inputs[gate]].quantization.scale[0])
        change(op.inputs[i], (units,), float(scale), 0, rng.integers(-2000, 2000, units).astype(np.int32))
    op.builtinOptions.cellClip, op.builtinOptions.timeMajor = clip, time_major
    graph.operators, graph.inputs, graph.outputs = [op], [op.inputs[0]], [op.outputs[0]]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def judge(data: bytes, folder: Path, samples: int) -> None:
    """Check that all numbers of all layers equal LiteRT's, for inputs of all kinds and from one run to the next."""
    (folder / "lstm.tflite").write_bytes(data)
    source = load(str(folder / "lstm.tflite"))
    graph = lower(source).graph
    assert float_layers(graph) == [] and source.notes == ()
    assert "litert_lstm" in {node.op.name for node in graph.nodes}
    plain = fb.ModelT.InitFromPackedBuf(data, 0).subgraphs[0]
    (given,) = graph.of(graph.inputs)
    assert given.quant is not None
    rng = np.random.default_rng(0)
    for kind, make in INPUTS.items():
        theirs, memory = litert.LiteRt(data, ()), dict[str, Any]()
        for _ in range(samples):
            numbers = make(rng, given.shape, given.quant.scale[0], given.quant.zero_point[0])
            x = np.clip(numbers, -128, 127).astype(np.int8)
            want = theirs.run({plain.inputs[0]: x}, plain.outputs)
            got = interpret(graph, (x,), memory=memory)
            assert np.array_equal(got[graph.outputs[0]], want[plain.outputs[0]]), kind


def test_the_committed_layers_on_inputs_of_all_kinds(tmp_path: Path) -> None:
    """The second layer is also an output, because a softmax hides differences."""
    model = fb.ModelT.InitFromPackedBuf(FILE.read_bytes(), 0)
    model.signatureDefs = None
    graph = model.subgraphs[0]
    graph.operators = graph.operators[:2]
    graph.outputs = list(graph.operators[1].outputs)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    judge(bytes(builder.Output()), tmp_path, samples=8)


@pytest.mark.parametrize(
    "options",
    [
        {"time": 150, "units": 33, "width": 5},
        {"hidden": (0.006, -12), "x": (0.01, 100), "cell": 2.0**-11, "clip": 0.0},
        {"batch": 3, "time": 5, "cell": 2.0**-15, "time_major": True},
        {"clip": 1.5, "weights": 0.1, "cell": 2.0**-9},
    ],
    ids=["long", "affine", "time first", "limited"],
)
def test_sizes_scales_and_limits(options: dict[str, Any], tmp_path: Path) -> None:
    judge(edited(np.random.default_rng(1), **options), tmp_path, samples=2)


def test_an_input_of_small_numbers_leaves_no_layer_out(tmp_path: Path) -> None:
    judge(edited(np.random.default_rng(2), x=(0.0004, 3), weights=0.003), tmp_path, samples=2)


def test_a_cell_in_a_scale_that_litert_has_no_tanh_for_is_ours(tmp_path: Path) -> None:
    (tmp_path / "lstm.tflite").write_bytes(edited(np.random.default_rng(1), cell=2.0**-8))
    source = load(str(tmp_path / "lstm.tflite"))
    graph = lower(source).graph
    assert "qlstm" in {node.op.name for node in graph.nodes} and float_layers(graph) == []
    assert any("its cells are limited to 16, not to 10" in note for note in source.notes)


@pytest.mark.parametrize("options", [{"weights": 2.0**-60}, {"hidden": (2.0**-40, 0)}, {"hidden": (2.0**40, 0)}])
def test_scales_beyond_all_shifts_are_not_computed_so(options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "lstm.tflite").write_bytes(edited(np.random.default_rng(1), **options))
    source = load(str(tmp_path / "lstm.tflite"))
    assert "litert_lstm" not in {node.op.name for node in lower(source).graph.nodes}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_any_sizes_and_scales(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    data = edited(
        rng,
        time=int(rng.choice([1, 7, 30, 200])),
        batch=int(rng.choice([1, 1, 3])),
        width=int(rng.integers(1, 40)),
        units=int(rng.integers(1, 60)),
        x=(float(10 ** rng.uniform(-3, -1)), int(rng.integers(-128, 128))),
        weights=float(10 ** rng.uniform(-3, -1)),
        hidden=(float(rng.uniform(0.004, 0.0078)), int(rng.integers(-60, 60))),
        cell=2.0 ** -int(rng.integers(9, 16)),
        clip=float(rng.choice([0, 0.4, 3, 10])),
        time_major=bool(rng.integers(2)),
    )
    judge(data, tmp_path, samples=3)

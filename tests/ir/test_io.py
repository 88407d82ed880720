"""A port stores a type, and the dtype of a caller's array means real numbers or stored values."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

import baretorch
from baretorch.errors import CompileError
from baretorch.exports.example import example_c, example_of
from baretorch.frontends import load
from baretorch.frontends.calibration import examples_of
from baretorch.ir.graph import Array, DType, Graph, Quant, Tensor
from baretorch.ir.io import arrange_inputs, as_real, as_stored, real_inputs, store_inputs
from baretorch.studio.controls import input_control
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch as command
from tests.cli.program import check_golden
from tests.frontends.tflite_files import Q, TfliteWriter

SHORT, BYTE, OLD = Q(0.001, 0, "int16"), Q(0.05, -7), Q(0.05, 121, "uint8")
X = np.array([[0.5, -1.25, 3.0, 1e9, -1e9, 0.0]], np.float32)  # the last but one and two saturate


def double(folder: Path, q: Q) -> Path:
    """Write a file that adds its input to itself."""
    writer = TfliteWriter()
    g = writer.main
    x = g.input((1, 6), q)
    g.output(g.op("ADD", [x, x], (1, 6), Q(2 * float(np.float32(q.scale)), q.zero, q.type), "AddOptions"))
    path = folder / f"double_{q.type}.tflite"
    path.write_bytes(writer.bytes())
    return path


def in_range(q: Q) -> Array:
    """Return X as it is after rounding and saturation."""
    return ((q.stored(X).astype(np.float64) - q.zero) * np.float32(q.scale)).astype(np.float32)


def stored_type(q: Q) -> Q:
    """Return how the Graph stores it: uint8 as int8."""
    return Q(q.scale, q.zero - 128) if q.type == "uint8" else q


@pytest.mark.parametrize("q", [SHORT, BYTE, OLD], ids=lambda q: q.type)
@pytest.mark.parametrize("io", [None, "float"])
def test_real_numbers_and_stored_values(q: Q, io: str | None, tmp_path: Path) -> None:
    """The image and LiteRT take real numbers, which saturate, and stored values, and return real numbers."""
    model = baretorch.compile(str(double(tmp_path, q)), board="host", io=io)
    want = 2 * in_range(q)
    values = stored_type(q).stored(X)
    step = 2 * float(np.float32(q.scale)) * 1.001
    made = model.run(X)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, want, rtol=0, atol=step)
    eager = model.compiled.source.eager
    assert eager is not None
    np.testing.assert_allclose(eager()(X), want, rtol=0, atol=step)
    np.testing.assert_array_equal(eager()(values), eager()(X))
    assert model.evaluate(lambda run: {"most": float(np.abs(run(X)).max())})["most"] == np.abs(made).max()
    if io is None:
        np.testing.assert_array_equal(model.run(values), made)
        with pytest.raises(CompileError, match="wrong shape or type") as wrong:
            model.run(values.astype(np.int32))
        check_golden(f"error_input_type_{q.type}", wrong.value.render() + "\n")
    else:
        with pytest.raises(CompileError, match="wrong shape or type"):
            model.run(values)


def test_an_int8_border_takes_both(tmp_path: Path) -> None:
    """A float model that was quantized also has quantized ports with --io int8."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(1, 6)
    model = baretorch.compile(torch.nn.ReLU(), (x,), board="host", calibration=[(x,), (-x,)], io="int8")
    (port,) = model.compiled.graph.takes()
    values = as_stored(port.tensor, x.numpy())
    assert values.dtype == np.int8 and port.dtype is DType.FLOAT32
    np.testing.assert_array_equal(model.run(values), model.run(x))


@pytest.mark.parametrize("label", ["uint8", "int32", "int64", "bool"])
def test_ports_without_a_scale_have_one_type(label: str) -> None:
    """Such values are stored as they are, and nothing else is accepted."""
    t = Tensor("x", (4,), DType(next(d for d in DType if d.label == label).value))
    graph = Graph("g", {"x": t}, (), ("x",), ("x",))
    x = np.array([0, 1, 1, 0]).astype(label)
    (port,) = graph.takes()
    assert port.dtype.label == label
    for convert in (store_inputs, real_inputs):
        (same,) = convert(graph, arrange_inputs(graph, [x]))
        assert same.dtype == x.dtype and np.array_equal(same, x)
    with pytest.raises(CompileError) as wrong:
        arrange_inputs(graph, [x.astype(np.float32)])
    assert wrong.value.need == (f"{label}[4]",)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("scale", [1e-30, 0.0123, 1.0, 1e30])
def test_every_stored_value_round_trips(dtype: DType, scale: float) -> None:
    limits = np.iinfo(dtype.numpy)
    zero = -3 if dtype is DType.INT8 else 0
    t = Tensor("x", (limits.max - limits.min + 1,), dtype, Quant((scale,), (zero,)))
    every = np.arange(limits.min, limits.max + 1).astype(dtype.numpy)
    np.testing.assert_array_equal(as_stored(t, as_real(t, every)), every)
    assert as_stored(t, every) is every


def test_graph_tensors_with_a_note_only_are_real() -> None:
    """A float tensor may have a note of the scale that it will get: it still stores float."""
    t = Tensor("x", (2,), DType.FLOAT32, Quant((0.5,), (0,)))
    x = np.array([0.3, -0.3], np.float32)
    assert not t.is_quantized and as_stored(t, x) is x and as_real(t, x) is x


def model_file(folder: Path, tflite: Path) -> Path:
    """Write a model file with a sweep and a task, in real numbers and in stored values."""
    text = f"""
        import numpy as np
        def model():
            return "{tflite.name}"
        X = np.array([[0.5, -1.25, 3.0, 1e9, -1e9, 0.0]], np.float32)
        STORED = np.array([[500, -1250, 3000, 32767, -32768, 0]], np.int16)
        def inputs():
            return (STORED,)
        def sweep():
            return [(X,), (STORED,)]
        def evaluate(run):
            return {{"same": float(np.array_equal(run(X), run(STORED))), "most": float(run(X).max())}}
        def calibration():
            return [(X,)]
        """
    path = folder / "named.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_the_verbs_take_int16(tmp_path: Path) -> None:
    """`run`, `monitor`, `evaluate`, `inspect` and `tune` of a 16x8 file, through a model file that has both forms."""
    path = str(model_file(tmp_path, double(tmp_path, SHORT)))
    ran = command("run", path, "--board", "host", "--out", str(tmp_path / "out"), "--json").json()
    assert ran["reference"] == "LiteRT" and ran["max_error"] <= 0.0021
    data = command("monitor", path, "--board", "host", "--json").json()
    assert data["count"] == 2 and data["reference"] == "LiteRT" and data["max_error"] <= 0.0021
    found = command("evaluate", path, "--board", "host", "--json").json()
    metrics = found["metrics"]
    assert list(metrics) == ["litert", "host", "target"]
    assert all(m["same"] == 1.0 and abs(m["most"] - 65.534) < 0.003 for m in metrics.values())
    about = command("inspect", path, "--json").json()
    assert (
        about["inputs"][0] | {"scale": float(np.float32(0.001)), "zero_point": 0, "dtype": "int16"}
        == about["inputs"][0]
    )
    refused = command("tune", path, "--board", "host")
    assert refused.code == 1 and "quantized already" in refused.err


def test_what_the_header_the_example_and_the_page_say_of_int16(tmp_path: Path) -> None:
    model = baretorch.compile(str(double(tmp_path, SHORT)), board="host")
    header = model.c_files["model.h"]
    assert header.count("_SCALE ") == 2 and header.count("_ZERO_POINT (0)") == 2
    assert "_SCALE * (float)(" in example_c(example_of(model.compiled))
    (port,) = model.compiled.graph.takes()
    control = input_control(port, "x", [in_range(SHORT)])
    assert control.dtype is DType.FLOAT32 and control.low <= -32 and control.high >= 32.7


def test_example_files_may_hold_stored_values(tmp_path: Path) -> None:
    """An .npz next to the model follows the same rule."""
    path = double(tmp_path, SHORT)
    graph = load(str(path)).graph
    for name, x in (("real", in_range(SHORT)), ("stored", SHORT.stored(X))):
        np.savez(tmp_path / f"{path.stem}.inputs.npz", x)
        found = examples_of(path, graph, [])
        assert found is not None, name
        np.testing.assert_array_equal(
            real_inputs(graph, arrange_inputs(graph, found))[0].reshape(1, 6), in_range(SHORT)
        )


def test_boards_agree(tmp_path: Path) -> None:
    """An emulated chip takes the same bytes as the host."""
    assert load_board("mps2-an386")
    model = baretorch.compile(str(double(tmp_path, SHORT)), board="mps2-an386")
    host = baretorch.compile(str(double(tmp_path, SHORT)), board="host")
    np.testing.assert_array_equal(model.run(X), host.run(X))
    np.testing.assert_array_equal(model.run(SHORT.stored(X)), host.run(X))

"""`baretorch new --from`: a Python file for a model that is there, which runs as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from baretorch.pipeline import read
from tests.cli.program import baretorch, check_golden

DATA = Path(__file__).parents[1] / "frontends" / "data"


def onnx_file(path: Path, *shape: int | str) -> None:
    import onnx
    from onnx import TensorProto, helper

    taken = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
    given = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("Relu", ["image"], ["y"])], "net", [taken], [given])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)


def check_runs(model: str, *more: str) -> str:
    """The file that is written, somewhere else, runs; it is given back."""
    written = baretorch("new", "some/where/net.py", "--from", model, *more, "--json")
    assert written.code == 0, written.err
    assert written.json()["from"] == model
    result = baretorch("run", "some/where/net.py", "--board", "host", "--json")
    assert result.code == 0, result.err
    return Path("some/where/net.py").read_text()


def test_pte(folder: Path) -> None:
    shutil.copy(DATA / "cnn.pte", folder)
    text = check_runs("cnn.pte")
    compile(text, "net.py", "exec")
    assert '    return "../../cnn.pte"\n' in text
    source = read("some/where/net.py")
    assert [x.shape for x in source.examples] == [x.shape for x in read("cnn.pte").examples]


def test_onnx(folder: Path) -> None:
    onnx_file(folder / "net.onnx", 1, 3, 4, 4)
    assert "rng.standard_normal((1, 3, 4, 4), np.float32),  # image\n" in check_runs("net.onnx")
    source = read("some/where/net.py")
    assert source.library == "onnxruntime"
    assert np.array_equal(source.expected or (), [np.maximum(source.examples[0], 0)])


def test_data_next_to_the_model_is_its_example(folder: Path) -> None:
    onnx_file(folder / "net.onnx", 1, 3)
    np.savez("net.calibration.npz", image=np.float32([[1, -2, 3], [4, 5, 6]]))
    text = check_runs("net.onnx")
    assert "inputs.npz or calibration.npz" in text and "def inputs" not in text and "standard_normal" not in text
    assert np.array_equal(read("some/where/net.py").examples, [[[1, -2, 3]]])


@pytest.mark.parametrize(("name", "given"), [("onnx_open", ()), ("onnx_shape", ("--shape", "image=1,2"))])
def test_shapes_that_do_not_fit(name: str, given: tuple[str, ...], folder: Path) -> None:
    pytest.importorskip("onnx")
    onnx_file(folder / "net.onnx", "n", 3, "h")
    result = baretorch("new", "net.py", "--from", "net.onnx", *given)
    assert (result.code, result.out) == (1, "")
    check_golden(f"error_{name}", result.err)


def test_open_shapes_are_those_that_were_given(folder: Path) -> None:
    onnx_file(folder / "net.onnx", "n", 3, "h", 4)
    assert "standard_normal((2, 3, 5, 4), np.float32)" in check_runs("net.onnx", "--shape", "image=2,3,5,4")


def test_pt2(folder: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),)), "net.pt2")
    assert "standard_normal((2, 3), np.float32)" in check_runs("net.pt2")
    assert read("some/where/net.py").expected is not None


def test_tflite(folder: Path) -> None:
    shutil.copy(DATA / "kws_int8.tflite", folder)
    check_runs("kws_int8.tflite")
    assert read("some/where/net.py").library == "LiteRT"


TASK = """
def evaluate(run):
    rng = np.random.default_rng(1)
    answers = [run(*(rng.standard_normal(x.shape, np.float32) for x in inputs())) for _ in range(3)]
    return {"mean": float(np.mean([np.abs(y).mean() for y in answers]))}
"""


@pytest.mark.parametrize("name", ["net.onnx", "kws_int8.tflite"])
def test_accuracy_on_the_target(name: str, folder: Path) -> None:
    """The file's own runtime, the host and the target answer alike; a model that is int8 stays as it is."""
    onnx_file(folder / "net.onnx", 1, 3, 4, 4)
    shutil.copy(DATA / "kws_int8.tflite", folder)
    baretorch("new", "net.py", "--from", name)
    with Path("net.py").open("a") as file:
        file.write(TASK)
    floats = ["--float"] if name == "net.onnx" else []
    found = baretorch("evaluate", "net.py", "--board", "mps2-an386", "--target-samples", "1", *floats, "--json")
    assert found.code == 0, found.err
    metrics = found.json()["metrics"]
    assert list(metrics) == ["onnxruntime" if name == "net.onnx" else "litert", "host", "target"]
    first, *others = (m["mean"] for m in metrics.values())
    assert others == pytest.approx([first, first], rel=1e-6 if floats else 0.02)
    if not floats:
        refused = baretorch("evaluate", "net.py", "--board", "host", "--float")
        assert (refused.code, refused.err.splitlines()[0]) == (1, "error: --float: the model is quantized already")


def test_names_do_no_harm(folder: Path) -> None:
    shutil.copy(DATA / "sine.pte", folder / "a\"b'.pte")
    check_runs("a\"b'.pte")


@pytest.mark.parametrize("flags", [["--kind", "cnn", "--from", "x.pte"]])
def test_usage(flags: list[str], folder: Path) -> None:
    assert baretorch("new", "net.py", *flags).code == 2

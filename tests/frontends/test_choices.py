"""Widths and sizes that a model file offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.frontends.choices import Offer
from baretorch.frontends.model_file import load_evaluate, load_model_file, load_offer, load_train

FILE = """
from types import SimpleNamespace
WIDTHS, SIZES = (0.5, 1), [16, 32]
def model(width=1, size=32): return SimpleNamespace(forward=print, made=(width, size))
def inputs(size=32): return (size,)
def calibration(size=32): return [size, size]
def evaluate(run, samples=3, size=32): return {"a": samples * size}
def train(model, width=1): model.append(width)
"""


def written(folder: Path, text: str) -> str:
    (folder / "net.py").write_text(text)
    return str(folder / "net.py")


def test_every_function_gets_what_it_has_a_parameter_for(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    assert load_offer(path) == Offer({"width": (0.5, 1), "size": (16, 32)}, {"width": 1, "size": 32})
    for asked, made, size in (({}, (1, 32), 32), ({"width": 0.5}, (0.5, 32), 32), ({"size": 16}, (1, 16), 16)):
        model, methods, samples = load_model_file(Path(path), asked)
        assert (model.made, methods, list(samples or ())) == (made, {"forward": (size,)}, [size, size])
        assert load_evaluate(path, 2, asked)(print) == {"a": 2 * size}
        train, found = load_train(path, asked), list[float]()
        assert callable(train)
        train(found)
        assert found == [made[0]]


def test_most_files_offer_nothing(tmp_path: Path) -> None:
    """Whatever their functions' parameters are called."""
    path = written(tmp_path, FILE.replace("WIDTHS, SIZES = (0.5, 1), [16, 32]", ""))
    assert load_offer(path) == Offer()
    (tmp_path / "net.onnx").touch()
    assert load_offer(str(tmp_path / "net.onnx")) == Offer()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("(0.5, 1)", "()", "WIDTHS is not a list of choices"),
        ("(0.5, 1)", "(0, 1)", "WIDTHS is not a list of choices"),
        ("(0.5, 1)", "(1, 1.0)", "WIDTHS is not a list of choices"),
        ("(0.5, 1)", "(float('nan'), 1)", "WIDTHS is not a list of choices"),
        ("[16, 32]", "range(3)", "SIZES is not a list of choices"),
        ("model(width=1, ", "model(", r"the file has WIDTHS, and model\(\) takes no width"),
        ("inputs(size=32)", "inputs()", r"the file has SIZES, and inputs\(\) takes no size"),
        ("calibration(size=32)", "calibration()", r"the file has SIZES, and calibration\(\) takes no size"),
        ("inputs(size=32)", "inputs(size)", r"size of inputs\(\) has no default"),
        ("inputs(size=32)", "inputs(size=16)", r"size of inputs\(\) has the default 16"),
        ("model(width=1", "model(width=2", r"width of model\(\) has the default 2"),
        ("train(model, width=1)", "train(model, width=0.5)", r"width of train\(\) has the default 0.5"),
    ],
)
def test_what_does_not_go_together(old: str, new: str, text: str, tmp_path: Path) -> None:
    assert old in FILE
    with pytest.raises(CompileError, match=text):
        load_offer(written(tmp_path, FILE.replace(old, new)))

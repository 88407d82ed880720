"""Figures and results of the Python interface are those of the command line; errors and reprs stay short."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.errors import CompileError
from baretorch.options import OPTIONS, CompileOptions

X = torch.linspace(-1, 1, 8).reshape(1, 8)
LONGEST = 500  # characters of a repr


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


@pytest.fixture(scope="module")
def model() -> Any:
    with baretorch.compile(network(), (X,), board="mps2-an386", name="net") as made:
        yield made


def test_figures_are_those_of_a_run(model: baretorch.Model) -> None:
    found = model.compare()
    image = model.build()
    assert model.flash == found["flash"]["total"] == image.flash.total
    assert model.ram == found["ram"]["total"] == image.ram.total
    assert model.time_ms == found["time_ms"]
    assert model.accuracy.max_error == found["max_error"] < 1e-6
    assert model.accuracy.reference == "PyTorch" and model.accuracy.max_lsb is None
    assert found["instructions"] > 100
    model.run(X)
    assert model.instructions == found["instructions"]


def test_results_read_as_the_command_line_prints_them(model: baretorch.Model) -> None:
    text = str(model.compare())
    assert "board      " in text and "max error" in text
    profile = model.profile()
    assert sum(layer["instructions"] for layer in profile["layers"]) <= profile["instructions"] == model.instructions
    assert "linear" in str(profile)
    assert profile._repr_html_().startswith("<pre") and "linear" in profile._repr_html_()
    assert dict(profile) == {key: profile[key] for key in profile} and len(profile) == len([*profile])


def test_fit(model: baretorch.Model) -> None:
    found = model.fit(["pico", "arduino-uno"])
    assert [board["board"] for board in found["boards"]] == ["pico", "arduino-uno"]
    assert all(board["fits"] for board in found["boards"][:1])
    assert "pico" in str(found)


def test_project(model: baretorch.Model, tmp_path: Path) -> None:
    assert model.project("make", tmp_path / "project") == []
    assert any((tmp_path / "project").rglob("model.h"))
    with pytest.raises(CompileError, match="unknown SDK 'mak'") as caught:
        model.project("mak", tmp_path / "other")
    assert "'make'" in str(caught.value.try_)


def test_flash_board_reports_a_board_without_flash(model: baretorch.Model) -> None:
    with pytest.raises(CompileError, match="cannot be flashed"):
        model.flash_board()


def test_a_card_for_notebooks() -> None:
    with baretorch.compile(network(), (X,), board="mps2-an386", name="n") as made:
        before = made._repr_html_()
        assert "<b>n</b>" in before and "arena" in before and "flash" not in before
        made.compare()
        after = made._repr_html_()
    assert "flash" in after and "instructions" in after and "against PyTorch" in after


def test_reprs_are_short(model: baretorch.Model) -> None:
    values = (model, model.memory, model.accuracy, model.compare(), model.profile(), model.build(), model.compiled)
    for value in (*values, model.compiled.source, model.compiled.plan, model.compiled.graph, model.compiled.board):
        assert len(repr(value)) <= LONGEST, type(value)
        assert len(str(value)) <= LONGEST or isinstance(value, baretorch.Summary), type(value)


def test_a_closed_model_can_be_used_again() -> None:
    with baretorch.compile(network(), (X,), board="host") as made:
        first = np.asarray(made.run(X))
    np.testing.assert_array_equal(np.asarray(made.run(X)), first)
    made.close()


def test_an_error_has_no_frames_of_torch_or_baretorch() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(CompileError) as caught:
        baretorch.compile(Branches(), (X,), board="host")
    text = "".join(traceback.format_exception(caught.value))
    assert "forward() branches on the value of a tensor" in text
    assert text.count('File "') <= 3 and "site-packages/torch" not in text, text
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_keywords_for_editors_are_those_of_the_options() -> None:
    hints = get_type_hints(CompileOptions)
    assert list(hints) == [name for name in OPTIONS if name != "calibration"]  # a parameter of its own
    for name, hint in hints.items():
        parts = get_args(hint) if type(None) in get_args(hint) else (hint,)
        words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        assert tuple(words) == OPTIONS[name].choices, name
        assert (type(None) in parts) == OPTIONS[name].optional, name


def test_dir_lists_the_public_names_without_loading_torch() -> None:
    code = "import sys, baretorch; print(*dir(baretorch)); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(baretorch.__all__)

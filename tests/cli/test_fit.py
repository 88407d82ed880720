"""Which boards hold a model, and that following the advice makes it fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from baretorch.cli.verb import ProgressLine
from tests.cli.program import baretorch, copy_model
from tests.zoo.zoo import ZOO

# model, board, what fit says
ADVICE = [
    (ZOO / "kws.py", "microbit", ["--int8"]),
    pytest.param(ZOO / "ad.py", "mps3-an547", ["--int8"], marks=pytest.mark.slow),
    (ZOO / "mnist_mlp.py", "corstone-300", ["--int8", "--npu", "off"]),
]


@pytest.mark.parametrize(("model", "board", "options"), ADVICE)
def test_advice_makes_it_fit(model: Path, board: str, options: list[str]) -> None:
    (found,) = baretorch("fit", str(model), "--board", board, "--json").json()["boards"]
    assert found["fits"] is False
    assert found["change"]["options"] == options
    built = baretorch("build", str(model), "--board", board, *options, "--json")
    assert built.code == 0, built.err
    data = built.json()
    assert data["ram"]["arena"] == found["change"]["ram"]["arena"]
    assert data["flash"]["weights"] == found["change"]["flash"]["weights"]
    assert abs(data["flash"]["total"] - found["change"]["flash"]["need"]) <= 16  # alignment
    assert baretorch("build", str(model), "--board", board).code == 1  # as it is


IMAGE = """import torch
from torch import nn
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU())
def inputs(): return (torch.ones(1, 3, 24, 24),)
def calibration():
    torch.manual_seed(1)
    return list(torch.randn(8, 1, 3, 24, 24))
"""


@pytest.mark.parametrize("board", ["cluster8", "pico"])
def test_fit_and_inspect_measure_what_build_builds(board: str, folder: Path) -> None:
    """Models run on all cores of a cluster and on its units, with the weights that its CPU prefers."""
    (folder / "net.py").write_text(IMAGE)
    asked = ("net.py", "--board", board, "--int8", "--json")
    built = baretorch("build", *asked).json()
    (found,), facts = baretorch("fit", *asked).json()["boards"], baretorch("inspect", *asked).json()
    (sheet,) = facts["boards"]
    for arena in (found["ram"]["arena"], facts["plan"]["arena"]):
        assert arena == built["ram"]["arena"]
    for flash in (found["flash"]["need"], sheet["flash"]["size"] - sheet["flash"]["room"]):
        assert abs(flash - built["flash"]["total"]) <= 16  # alignment
    assert found["ram"]["room"] == sheet["ram"]["room"]
    assert abs(sheet["ram"]["size"] - sheet["ram"]["room"] - sheet["ram"]["used"]) <= 64, "the items add up"


def test_every_board(folder: Path) -> None:
    """Every board but this computer is listed; boards with the same CPU and number of cores to use share one build."""
    data = baretorch("fit", copy_model("tiny", folder), "--json").json()
    boards = {b["board"]: b for b in data["boards"]}
    assert {"pico", "pico2w", "microbit", "virt-rv32"} < set(boards) and "host" not in boards
    assert all(b["fits"] and b["change"] is None and b["advice"] == "" for b in boards.values())
    kinds = {name: (b["cpu"], name if name.startswith("cluster") else "") for name, b in boards.items()}
    measured = [kinds[name] for name, b in boards.items() if b["measured"]]
    assert sorted(measured) == sorted(set(kinds.values()))
    for b in boards.values():
        assert b["flash"]["room"] == b["flash"]["size"] - b["flash"]["need"] > 0
        assert b["ram"]["room"] == b["ram"]["size"] - b["ram"]["need"] > 0


def test_calibration_is_a_warning_as_in_run(folder: Path) -> None:
    data = baretorch("fit", copy_model("tiny", folder), "--board", "pico", "--int8", "--json").json()
    assert data["notes"] == [] and [w.split(":")[0] for w in data["warnings"]] == ["calibration"]
    shown = baretorch("fit", "tiny.py", "--board", "pico", "--int8").out.splitlines()
    assert any(row.startswith("warning: calibration: no calibration()") for row in shown)


def test_time(folder: Path) -> None:
    """The estimated time is that of `run`, flash included."""
    model = copy_model("tiny", folder)
    asked = ("--board", "pico2w", "--board", "mps2-an386", "--time")
    pico, mps = baretorch("fit", model, *asked, "--json").json()["boards"]
    run = baretorch("run", model, "--board", "pico2w", "--json").json()
    assert pico["time"].items() <= run.items()
    assert pico["time"]["flash_cycles"] is not None and mps["time"]["flash_cycles"] == 0
    assert mps["time"]["cycles"] == mps["time"]["core_cycles"] > 0
    shown = baretorch("fit", model, *asked)
    assert "time" in shown.out and "for flash" in shown.out


def test_pulled_rows_for_a_program_of_ones_own(folder: Path) -> None:
    """An image of Baretorch holds the whole input, so `--input rows` cannot make it fit. Only C files can use it."""
    (found,) = baretorch("fit", copy_model("wide_image", folder), "--board", "microbit", "--json").json()["boards"]
    assert found["fits"] is False and found["change"] is None
    words = "`baretorch compile` with --int8 --input rows writes C that needs "
    assert found["advice"].startswith(words)
    arena = int(found["advice"].removeprefix(words).split()[0].replace(",", ""))
    options = ("--board", "microbit", "--int8", "--input", "rows", "--out", "c", "--json")
    assert baretorch("compile", "wide_image.py", *options).json()["arena"] == arena
    assert "an input of about" in found["advice"] and "instead of 96 x 96" in found["advice"]


def test_what_no_option_helps() -> None:
    """Weights that are too large even in int8: by how much."""
    (found,) = baretorch("fit", str(ZOO / "mnist_mlp.py"), "--board", "microbit", "--json").json()["boards"]
    assert found["change"] is None
    assert found["advice"].startswith("with --int8, weights and code must shrink by ")


def test_table(folder: Path) -> None:
    result = baretorch("fit", str(ZOO / "ad.py"), "--board", "mps3-an547", "--board", "corstone-300")
    lines = result.out.splitlines()
    assert lines[0] == "ad float32  fits 0 of 2 boards as it is"
    assert any(line.startswith("corstone-300") and "~-" in line for line in lines)  # as measured for mps3-an547
    assert any(line.startswith("mps3-an547") and "--int8" in line and "of ITCM" in line for line in lines)


def test_what_is_built_in_bands_is_marked(folder: Path) -> None:
    model = copy_model("wide_image", folder)
    whole = baretorch("build", model, "--board", "pico2w", "--json").json()
    limit = str(whole["ram"]["arena"] - 1000)
    data = baretorch("build", model, "--board", "pico2w", "--input", "rows", "--ram", limit, "--json").json()
    assert whole["bands"] is None
    assert data["ram"]["arena"] <= int(limit)
    assert data["bands"]["bands"] > 1 and len(data["bands"]["layers"]) > 1 and data["bands"]["copied"] > 0
    result = baretorch("run", model, "--board", "pico2w", "--input", "rows", "--ram", limit)
    assert result.code == 0, result.err
    assert f"{len(data['bands']['layers'])} layers in {data['bands']['bands']} bands" in result.out


def test_progress_counts_the_boards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int, int]] = []

    @contextmanager
    def recording(as_json: bool) -> Iterator[ProgressLine]:
        yield ProgressLine(lambda *progress: shown.append(progress))

    monkeypatch.setattr(sys.modules["baretorch.cli.fit"], "show_progress", recording)  # the package's `fit` is the verb
    assert baretorch("fit", copy_model("tiny", folder), "--board", "pico", "--board", "pico2w").code == 0
    plans = [s for s in shown if s[0].startswith("plan for ")]
    assert plans == [("plan for pico", 0, 2), ("plan for pico2w", 1, 2)]

"""Models of the field meet their goals on a Cortex-M4F: instructions, code and RAM at once, with default options."""

from __future__ import annotations

import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from tests.zoo.zoo import ROOT, run

FLOAT = ("softmax", "rfft512", "mnist_mlp", "kws", "tinyrps", "ic", "vww")  # sine: tests/test_road.py
INT8 = ("sine", "mnist_mlp", "ad", "kws", "tinyrps", "ic", "vww")
GOALS = [(name, "float32") for name in FLOAT] + [(name, "int8") for name in INT8]


@pytest.mark.parametrize(("name", "dtype"), GOALS)
def test_goals_on_cortex_m4f(name: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    peers = importlib.import_module("peers")
    facts = run(name, peers.M4F, peers.TOOLCHAIN, tmp_path, dtype == "int8")
    flash, ram = facts.image.flash, facts.image.ram
    ours = peers.Figures(facts.run.instructions, flash.model_code, ram.arena + ram.model_static)
    goal = peers.PEERS[name, dtype, peers.M4F].goal
    missed = [f.name for f in fields(goal) if (most := getattr(goal, f.name)) and getattr(ours, f.name) > most]
    assert missed == [], ours
    assert ram.stack < 512


@pytest.mark.parametrize(("layer", "precision"), [("linear784", "int4"), ("conv3x3", "int16")])
def test_goals_of_precisions(layer: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The goals are relative to int8, which becomes faster from time to time."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    precisions, peers = importlib.import_module("precisions"), importlib.import_module("peers")
    path = ROOT / "benchmarks" / "layers" / f"{layer}.py"
    monkeypatch.setattr(precisions, "ROOT", tmp_path)
    (name,) = (name for file, name, _ in precisions.LAYERS if file == layer)
    int8, other = (next(precisions.measure(path, [name], p, [peers.M4F])) for p in ("int8", precision))
    assert other["instructions"] <= precisions.GOALS[layer, precision] * int8["instructions"]
    bits = {"int4": 4, "int16": 8}[precision]
    assert other["weights"] <= int8["weights"] * bits / 8 * 1.02


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_recurrent_layers_take_half_of_float(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    peers = importlib.import_module("peers")
    float32, int8 = (
        run(name, peers.M4F, peers.TOOLCHAIN, tmp_path / str(i), i).run.instructions for i in (False, True)
    )
    assert int8 <= 0.5 * float32


@pytest.mark.parametrize("model", ["examples/sine/model.py", "examples/mnist/small.py"])
def test_goals_on_an_8_bit_chip(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are those of `make bench`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page, bench = importlib.import_module("page"), importlib.import_module("bench")
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    (tmp_path / model).parent.mkdir(parents=True)
    for file in (ROOT / model).parent.iterdir():
        (tmp_path / model).with_name(file.name).symlink_to(file)
    assert (model, True) in {(path, int8) for path, int8, boards in bench.MODELS if page.UNO in boards}
    (row,) = bench.measure(model, True, (page.UNO,))
    cycles, ram = page.AVR_GOALS[row["model"]]
    assert cycles is None or row["cycles"] <= cycles
    assert row["ram"]["total"] <= ram
    assert row["cycles_range"] == [row["cycles"]] * 2, "exact"

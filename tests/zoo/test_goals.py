"""What the field's models may take on a Cortex-M4F: instructions, code and RAM at once, with default options."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.zoo.zoo import ROOT, run

FLOAT = ("softmax", "rfft512", "mnist_mlp", "kws", "tinyrps", "ic", "vww")  # sine: tests/test_road.py
INT8 = ("sine", "mnist_mlp", "ad", "kws", "tinyrps", "ic", "vww")
GOALS = [(name, "float32") for name in FLOAT] + [(name, "int8") for name in INT8]


@pytest.mark.parametrize(("name", "dtype"), GOALS)
def test_goals_on_cortex_m4f(name: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page, peers = importlib.import_module("page"), importlib.import_module("peers")
    facts = run(name, peers.M4F, peers.TOOLCHAIN, tmp_path, dtype == "int8")
    flash, ram = facts.image.flash, facts.image.ram
    ours = peers.Figures(facts.run.instructions, flash.model_code, ram.arena + ram.model_static)
    assert page.verdict(ours, peers.PEERS[name, dtype, peers.M4F].goal) == "met", ours
    assert ram.stack < 512


@pytest.mark.parametrize("model", ["examples/sine/model.py", "examples/mnist/small.py"])
def test_goals_on_an_8_bit_chip(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very rows of `make bench`."""
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

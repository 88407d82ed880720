"""What the field's models may take on a Cortex-M4F: instructions, code and RAM at once, with default options."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.zoo.zoo import ROOT, run

MODELS = ("softmax", "mnist_mlp", "kws", "tinyrps", "ic", "vww")  # sine: tests/test_road.py


@pytest.mark.parametrize("name", MODELS)
def test_goals_on_cortex_m4f(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page, peers = importlib.import_module("page"), importlib.import_module("peers")
    facts = run(name, peers.M4F, peers.TOOLCHAIN, tmp_path)
    flash, ram = facts.image.flash, facts.image.ram
    ours = peers.Figures(facts.run.instructions, flash.model_code, ram.arena + ram.model_static)
    assert page.verdict(ours, peers.PEERS[name, "float32", peers.M4F].goal) == "met", ours
    assert ram.stack < 512

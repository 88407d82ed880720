"""The MNIST example in tinygrad: on the emulated pico it gives what tinygrad gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.program import baretorch
from tests.zoo.zoo import ROOT

EXAMPLE = ROOT / "examples" / "mnist"


def in_numpy() -> np.ndarray:
    """Return the network's output for the first test image."""
    with np.load(EXAMPLE / "weights.npz") as w, np.load(EXAMPLE / "sample.npz") as sample:
        x = sample["t10k_images"][:1].reshape(1, 784) / 255
        hidden = np.maximum(x @ w["0.weight"].astype(np.float64).T + w["0.bias"], 0)
        return np.asarray(hidden @ w["2.weight"].astype(np.float64).T + w["2.bias"])


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # images are built below it


def run(*options: str) -> dict[str, Any]:
    found = baretorch("run", str(EXAMPLE / "in_tinygrad.py"), "--board", "pico", *options, "--json")
    assert found.code == 0, found.err
    return found.json()


def test_float_on_the_pico() -> None:
    facts = run()
    assert (facts["reference"], facts["dtype"], facts["macs"]) == ("tinygrad", "float32", 317_600)
    assert facts["max_error"] < 1e-5
    np.testing.assert_allclose(np.ravel(facts["outputs"]), in_numpy()[0], atol=1e-4)


def test_int8_on_the_pico() -> None:
    facts = run("--int8")
    assert (facts["reference"], facts["dtype"], facts["float_layers"]) == ("tinygrad", "int8", [])
    assert facts["max_lsb"] <= 1
    answer, expected = np.ravel(facts["outputs"]), in_numpy()[0]
    assert answer.argmax() == expected.argmax()
    assert np.abs(answer - expected).max() < 0.02 * np.abs(expected).max()
    assert facts["flash"]["weights"] < 330_000
    assert facts["instructions"] < 1_500_000


LEARNS = """
import numpy as np
from train_in_tinygrad import accuracy, network, train
with np.load("sample.npz") as sample:
    images = sample["t10k_images"][:64].reshape(-1, 784).astype(np.float32) / 255
    part = images, sample["t10k_labels"][:64].astype(np.int64)
layers = network(hidden=64)
before = accuracy(layers, part)
train(layers, part, part, 60, 32, lambda epoch: None)
print(before, accuracy(layers, part))
"""


@pytest.mark.slow
def test_training_in_tinygrad_on_a_small_budget() -> None:
    """The network learns the few digits that it is given. It runs in another process, in which tinygrad is not patched
    for tracing, and compiled, because it takes minutes in Python."""
    env = {name: value for name, value in os.environ.items() if name != "DEV"}
    command = [sys.executable, "-c", LEARNS]
    done = subprocess.run(command, cwd=EXAMPLE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = map(float, done.stdout.split())
    assert before < 0.5 and after > 0.7

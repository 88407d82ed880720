"""Mistakes in Python files that name a model file or hold a tinygrad model give exactly these texts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.test_errors import check_error

DATA = Path(__file__).parents[1] / "frontends" / "data"

NAMED = """import numpy as np
def model(): return "sine.pte"
def inputs(): return (np.ones((1, 1), np.float32),)
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("named_missing", "def model(): return 'nets/sine.onnx'"),
        ("named_python", "def model(): return 'net.py'"),
        ("named_inputs", "def inputs(): return (np.ones((1, 2), np.float32),)"),
        ("named_count", "def inputs(): return ()"),
    ],
)
def test_named_files(name: str, text: str, folder: Path) -> None:
    shutil.copy(DATA / "sine.pte", folder)
    (folder / "net.py").write_text(f"{NAMED}{text}\n")
    check_error(name, "compile", "net.py", "--board", "pico", "--out", "c")


def test_new_from_python(folder: Path) -> None:
    (folder / "net.py").write_text(NAMED)
    check_error("new_from_python", "new", "other.py", "--from", "net.py")


def test_a_framework_that_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tinygrad", None)
    (folder / "net.py").write_text("from tinygrad import Tensor\n")
    check_error("tinygrad_missing", "compile", "net.py", "--board", "pico", "--out", "c")


TINYGRAD = """import numpy as np
from tinygrad import Tensor
WEIGHT = Tensor(np.ones((4, 2), np.float32))
def model(): return lambda x: net(x)
def inputs(): return (np.ones((1, 4), np.float32),)
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unknown", "def net(x): return (x.cummax(1)[0] @ WEIGHT).cumprod(1)"),
        ("unseen", "def net(x):\n    y = Tensor(x.uop * 2)\n    return y @ WEIGHT"),
        ("item", "def net(x):\n    y = x @ WEIGHT\n    return y / y.max().item()"),
        ("assign", "def net(x):\n    y = x @ WEIGHT\n    y += 1\n    return y"),
        ("setitem", "def net(x):\n    y = x @ WEIGHT\n    y[0] = 1\n    return y"),
        ("random", "def net(x): return x @ WEIGHT + Tensor.randn(1, 2)"),
        ("raises", "def net(x): return x @ WEIGHT @ WEIGHT"),
        ("nothing", "def net(x): return None"),
        ("half", "def net(x): return (x @ WEIGHT).half()"),
        ("row", "def net(x): return (x @ WEIGHT).softmax((0, 1))"),
        ("inputs_text", "def inputs(): return 'x'\ndef net(x): return x"),
        ("inputs_float64", "def inputs(): return np.ones((1, 4))\ndef net(x): return x @ WEIGHT"),
        ("model_weights", "def model(): return {'weight': WEIGHT}"),
    ],
)
def test_tinygrad(name: str, text: str, folder: Path) -> None:
    (folder / "net.py").write_text(f"{TINYGRAD}{text}\n")
    check_error(f"tinygrad_{name}", "compile", "net.py", "--board", "pico", "--out", "c")

"""Streaming inputs through a board, and the pictures made of the answers."""

from __future__ import annotations

import importlib.util
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from baretorch.report.terminal.lifetimes import Lifetimes
from baretorch.report.terminal.plot import Plot, Series
from tests.cli.program import baretorch, copy_model


def test_json(folder: Path) -> None:
    result = baretorch("monitor", copy_model("curve", folder), "--board", "pico2w", "--png", "p.png", "--json")
    assert result.code == 0, result.err + result.out
    data = result.json()
    assert data["x"] == [0, 1, 2, 3, 4]
    assert data["predicted"] == [1, 3, 5, 7, 9] and data["truth"] == [0, 2, 4, 6, 8]
    assert (data["max_error_truth"], data["mean_error_truth"], data["max_error"]) == (1.0, 1.0, 0.0)
    assert data["where"] == "unicorn"
    assert (folder / data["png"]).read_bytes().startswith(b"\x89PNG")


def test_lines(folder: Path) -> None:
    result = baretorch("monitor", copy_model("curve", folder), "--board", "host", "--count", "7")
    lines = result.out.splitlines()
    assert lines[0] == "curve on host, emulated by native: 7 inputs"
    assert lines[1].split() == ["1", "input", "0.0000", "output", "1.0000", "truth", "0.0000", "error", "+1.0000"]
    assert lines[7].split()[:5] == ["7", "input", "1.0000", "output", "3.0000"]
    assert lines[8:] == [
        "7 outputs",
        "mean absolute error against truth 1",
        "largest error against truth 1",
        "largest error against PyTorch 0",
    ]


def test_inputs_where_there_is_no_sweep(folder: Path) -> None:
    """Several outputs are shown as the index of the largest."""
    data = baretorch("monitor", copy_model("tiny", folder), "--board", "host", "--count", "3", "--json").json()
    assert data["x"] == [0, 1, 2]
    assert [data[key] for key in ("truth", "max_error_truth", "mean_error_truth")] == [None] * 3
    assert set(data["predicted"]) <= {0, 1} and data["max_error"] < 1e-6


def test_plot_without_a_terminal(folder: Path) -> None:
    out = baretorch("monitor", copy_model("curve", folder), "--board", "host", "--plot").out
    assert "── truth   ⣿ predicted by the board" in out
    assert out.count("inputs") == 1 and "largest error against truth 1" in out


def test_error_curve_and_mean_absolute_error(folder: Path) -> None:
    """The outputs are -2 to 2, the truth is 0: the error rises from corner to corner, and its mean has no sign."""
    (folder / "net.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def model(): return nn.Hardtanh(-9, 9)\n"
        "def sweep(): return [(torch.tensor([[float(x)]]),) for x in range(-2, 3)]\n"
        "def inputs(): return sweep()[0]\n"
        "def truth(x): return x * 0\n"
    )
    lines = baretorch("monitor", "net.py", "--board", "host", "--plot", "--png", "p.png").out.splitlines()
    (end,) = [i for i, line in enumerate(lines) if "── output − truth" in line]
    rows = [line.partition("│")[2] or line.partition("┤")[2] for line in lines[end - 7 : end - 2]]
    assert len(rows[0].rstrip()) > 2 * len(rows[-1].rstrip()) > 0, "the curve does not rise"
    assert lines[-4:] == [
        "mean absolute error against truth 1.2",
        "largest error against truth 2",
        "largest error against PyTorch 0",
        "p.png",
    ]
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_error_curve_without_truth(folder: Path) -> None:
    """The errors are those against PyTorch if there is no truth(), and the summary has no mean of them."""
    out = baretorch("monitor", copy_model("tiny", folder), "--board", "host", "--plot").out
    assert "── output − PyTorch" in out and "mean absolute error" not in out


@pytest.mark.parametrize("height", [8, 22])
def test_plot_has_the_asked_height(height: int) -> None:
    """Both plots share the height; each adds an axis of three lines, and the last output takes one."""
    from baretorch.cli.monitor import _plot
    from baretorch.explore.sweep import Sweep, SweepTrace
    from baretorch.ir.graph import Builder, DType
    from baretorch.ops.functions import Tanh

    b = Builder("net")
    graph = b.graph(["x"], [b.add(Tanh(), b.input("x", (1, 1), DType.FLOAT32))])
    one = tuple((np.full((1, 1), v, np.float32),) for v in (0.0, 1.0, 2.0))
    trace = SweepTrace(Sweep(one, one, (0.0, 1.0, 1.0), "PyTorch"), graph)
    for i, outputs in enumerate(one):
        trace.add(i, outputs)
    assert trace.errors == [0.0, 0.0, 1.0]
    lines = _draw(_plot(trace, 3, height), 80).splitlines()
    assert len(lines) == height + 3 + 3 + 1
    assert "── truth" in lines[height - max(3, height // 4) + 2] and "── output − truth" in lines[-2]


def test_ties_are_no_error(folder: Path) -> None:
    """Not even those that int8 makes: the second element is larger by a tenth of a step."""
    (folder / "net.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n    def forward(self, x): return torch.relu(x).argmax(-1)\n"
        "def model(): return Net()\ndef inputs(): return (torch.tensor([[-1.0, 0.999, 0.9995, 0.0, -0.5]]),)\n"
        "def calibration(): return [inputs(), (torch.tensor([[-1.0, 1.0, 0.5, 0.0, 0.2]]),)]\n"
    )
    for options in ((), ("--int8", "--io", "int8")):
        result = baretorch("monitor", "net.py", "--board", "host", "--json", *options)
        assert result.code == 0, result.err
        assert (result.json()["max_error"], result.json()["predicted"]) == (0, [1.0 if options else 2.0])


def test_interrupt_gives_the_summary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from baretorch.explore.sweep import SweepTrace

    add = SweepTrace.add

    def interrupted(self: SweepTrace, index: int, *answer: Any) -> None:
        if index == 2:
            raise KeyboardInterrupt
        add(self, index, *answer)

    monkeypatch.setattr(SweepTrace, "add", interrupted)
    result = baretorch("monitor", copy_model("curve", folder), "--board", "host")
    assert result.code == 0
    assert result.out.splitlines()[-4:] == [
        "2 outputs",
        "mean absolute error against truth 1",
        "largest error against truth 1",
        "largest error against PyTorch 0",
    ]


def test_serial_port(folder: Path) -> None:
    """A pseudo-terminal connects a program to `--port` like a cable connects a board."""
    model = copy_model("curve", folder)
    elf = baretorch("build", model, "--board", "host", "--json").json()["files"]["elf"]
    ours, theirs = pty.openpty()
    board = subprocess.Popen([elf], stdin=ours, stdout=ours)
    try:
        port = os.ttyname(theirs)
        result = baretorch("monitor", model, "--board", "host", "--port", port, "--json")
        assert result.code == 0, result.err + result.out
        assert result.json()["predicted"] == [1, 3, 5, 7, 9] and result.json()["where"] == port
    finally:
        board.kill()
        board.wait()
        os.close(ours)
        os.close(theirs)


def test_png_without_matplotlib(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else known(name, *rest)
    )
    result = baretorch("monitor", copy_model("curve", folder), "--board", "host", "--png", "p.png")
    assert result.code == 1
    assert 'pip install "baretorch[plot]"' in result.err


def test_port_and_emulator_exclude_each_other() -> None:
    result = baretorch("monitor", "m.py", "--board", "host", "--port", "x", "--emulator", "native")
    assert result.code == 2


def test_plot() -> None:
    """A rising line: dots from the lower left to the upper right, in a frame of the asked size."""
    text = _draw(Plot([Series("line", [0, 10], [0, 1], "red", line=True)], height=6), 40)
    lines = text.splitlines()
    assert len(lines) == 6 + 3 and max(map(len, lines)) <= 40
    ends = [len(line.rstrip()) for line in lines[:6]]
    assert ends == sorted(ends, reverse=True) and ends[0] >= 38 and ends[5] < 20
    assert lines[7].split() == ["0", "10"]


def test_plot_of_odd_values() -> None:
    """No values, one point, equal values, NaN and infinity do not make the plot fail."""
    for values in ([], [3.0], [2.0, 2.0], [float("nan"), 1.0], [float("inf"), -1e30, 1e-30]):
        text = _draw(Plot([Series("s", list(range(len(values))), values, "red")], height=4), 30)
        assert "⣿ s" in text


@pytest.mark.parametrize("width", [40, 80])
def test_lifetimes(folder: Path, width: int) -> None:
    """Blocks do not reach beyond the width, and each buffer has its line in the legend."""
    from baretorch.ir.graph import Builder, DType
    from baretorch.ops.functions import Tanh
    from baretorch.plan import make_plan
    from baretorch.targets.boards import load_board

    b = Builder("deep")
    x = b.input("x", (1, 100), DType.FLOAT32)
    for _ in range(200):
        x = b.add(Tanh(), x)
    plan = make_plan(b.graph(["x"], [x]), load_board("pico"))
    text = _draw(Lifetimes(plan), width)
    assert max(map(len, text.splitlines())) <= width
    assert {"x", "tanh", "tanh_23"} <= {line.split()[1] for line in text.splitlines() if "bytes at" in line}
    assert "and 177 more" in text
    assert width < 80 or "step 0 to step 1" in text


def _draw(what: object, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as text:
        console.print(what)
    return text.get()


def test_classes_are_integers(folder: Path) -> None:
    result = baretorch("monitor", copy_model("tiny", folder), "--board", "host", "--count", "2")
    assert [line.split()[:3] for line in result.out.splitlines()[1:3]] == [["1", "input", "0"], ["2", "input", "1"]]
    assert result.out.splitlines()[1].split()[-1] in ("0", "1")

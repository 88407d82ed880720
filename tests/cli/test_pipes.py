"""A pipe where a file is expected is an error, whatever option names it: to open one would wait for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baretorch.tune.search import read_purpose
from tests.cli.program import baretorch, check_golden, copy_model
from tests.pipes import ending

RUN = ("run", "tiny.py", "--board", "host")
COMMANDS = {
    **{f"model{suffix}": ("run", f"model{suffix}", "--board", "host") for suffix in (".py", ".pt2", ".pte", ".onnx")},
    "model.tflite": ("run", "model.tflite", "--board", "host"),
    "config.toml": (*RUN, "--int8", "--config", "config.toml"),
    "calibration.npz": (*RUN, "--int8", "--calibration", "calibration.npz"),
    "board.toml": ("run", "tiny.py", "--board", "./board.toml"),
    "script.gdb": ("debug", "tiny.py", "--board", "mps2-an386", "--script", "script.gdb"),
    "image.uf2": ("flash", "image.uf2", "--board", "pico"),
    "from.onnx": ("new", "starter.py", "--from", "from.onnx"),
    "report.html": ("report", "tiny.py", "--board", "mps2-an386", "--out", "report.html"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe(name: str, folder: Path) -> None:
    copy_model("tiny", folder)
    os.mkfifo(name)
    with ending(Path(name)):
        result = baretorch(*COMMANDS[name])
    assert result.code == 1, result.err
    check_golden(f"error_pipe_{name.replace('.', '_')}", result.err)
    assert Path(name).is_fifo()


def test_weights_of_a_configuration(folder: Path) -> None:
    copy_model("tiny", folder)
    Path("config.toml").write_text('weights = "weights.npz"\n[layers]\n')
    os.mkfifo("weights.npz")
    with ending(Path("weights.npz")):
        result = baretorch(*RUN, "--int8", "--config", "config.toml")
    assert result.code == 1
    check_golden("error_pipe_weights", result.err)


def test_a_result_of_an_earlier_search(folder: Path) -> None:
    os.mkfifo("tuned.toml")
    with ending(Path("tuned.toml")):
        assert read_purpose(folder) is None

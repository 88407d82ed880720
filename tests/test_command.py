"""The command in the header of generated C makes the same C again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.options import Options
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch

MODEL = """import torch
from torch import nn
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU())
def inputs(): return (torch.ones(1, 8, 12, 12),)
def calibration():
    torch.manual_seed(1)
    return [(torch.randn(1, 8, 12, 12),) for _ in range(8)]
"""


@pytest.mark.parametrize(
    ("board", "word"), [("cluster8", "--units auto"), ("corstone-300", "--npu auto"), ("pico", "--weights auto")]
)
def test_the_command_in_the_header_makes_the_same_c(
    board: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODEL)
    options = Options(int8=True)
    compiled = pipeline.compile_source(pipeline.read("net.py", options=options), load_board(board), options)
    command = compiled.options.command(board)
    assert word in command and command in compiled.c.files["model.c"]
    program, *words = shlex.split(command.replace("MODEL", "net.py"))
    result = baretorch(*words, "--out", "c")
    assert program == "baretorch" and result.code == 0, result.err
    assert {name: Path("c", name).read_text() for name in compiled.c.files} == compiled.c.files

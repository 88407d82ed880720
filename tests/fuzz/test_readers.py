"""Damaged files are read or refused with a CompileError, in little time and memory; nothing else happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.readers import READERS

ROOT = Path(__file__).parents[2]
MEGABYTES = 1000
# So many must be read, and of those without a number half be refused: the damage is real.
FILES = {"pte": 0.1, "ethos_u": 0.05, "tflite": 0.1, "onnx": 0.05, "pt2": 0.1}
LEAST = {**FILES, "check": 0.05, "toml": 0.1, "uf2": 0.3, "elf": 0.3, "frames": 1.0, "graph": 0.02}
MOST = {"frames": 1.0, "uf2": 0.9, "elf": 0.9}


def fuzz(count: int, seed: int, *readers: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz.worker", str(count), str(seed), *readers]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr[-4000:]
    *rows, peak = run.stdout.splitlines()
    assert int(peak) < MEGABYTES
    assert [row.split()[0] for row in rows] == list(readers)
    for name, read, refused in (row.split() for row in rows):
        assert int(read) + int(refused) == count
        assert LEAST[name] <= int(read) / count <= MOST.get(name, 0.5), rows


def test_two_hundred_of_each() -> None:
    fuzz(200, 1, *(name for name in READERS if name not in ("onnx", "pt2", "tflite")))


def test_some_onnx_files() -> None:
    fuzz(300, 1, "onnx")


def test_some_tflite_files() -> None:
    fuzz(300, 1, "tflite")


def test_some_pt2_files() -> None:
    fuzz(60, 1, "pt2")


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_twenty_thousand(name: str) -> None:
    for seed in range(10):
        fuzz(2000, seed, name)

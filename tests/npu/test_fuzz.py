"""Random graphs: what Vela makes of them, on the emulated NPU, is what Arm's TOSA reference model computes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from baretorch.npu.accelerators import ACCELERATORS
from baretorch.npu.vela import find_program
from tests.npu.cases import read_case

ROOT = Path(__file__).parents[2]
NOT_FOR_U55 = ("MaxPool", "Resize", "Reverse", "Gather", "And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterEqual")
NAMES = [each.name for each in ACCELERATORS]
SAMPLE = ("chain",)


def exact(folder: Path, first: int, count: int, *wanted: str) -> int:
    """How many graphs there were of the wanted kinds for the wanted accelerators, all of them exact."""
    vela = find_program("vela")
    if vela is None:
        pytest.skip("Vela is not installed: tools/setup.sh test does that")
    command = ["-W", "ignore", "-m", "tests.npu.tosa_cases", str(folder), str(first), str(count), *wanted]
    made = subprocess.run([vela.parent / "python", *command], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    for name, why in json.loads(made.stdout.splitlines()[-1]).items():
        allowed = [f"({op}) could not run on NPU" for op in NOT_FOR_U55]
        assert "u85" not in name and any(words in why for words in allowed), f"{name}: {why}"
    graphs = sorted(folder.glob("*.io.npz"))
    for io in graphs:
        case = read_case(io.with_name(io.name.replace(".io.npz", ".npz")), io)
        assert np.array_equal(case.answer(), case.right), io.name
    return len(graphs)


def test_a_few(tmp_path: Path) -> None:
    assert exact(tmp_path, 1000, 1, *NAMES, *SAMPLE) == len(NAMES) * len(SAMPLE)


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", NAMES)
def test_many(accelerator: str, tmp_path: Path) -> None:
    """Eleven accelerators of 200 graphs each."""
    assert exact(tmp_path, 0, 6, accelerator) >= 200

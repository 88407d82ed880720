"""Random graphs: what Vela makes of them, on the emulated NPU, is what Arm's TOSA reference model computes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from baretorch.npu.accelerators import ACCELERATORS
from baretorch.npu.tools import find
from tests.npu.cases import read_case

ROOT = Path(__file__).parents[2]
NOT_FOR_U55 = ("Resize", "Reverse", "Gather", "And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterEqual")
NAMES = [each.name for each in ACCELERATORS]
SAMPLE = ("chain", "depthwise", "add")


def exact(folder: Path, accelerator: str, first: int, count: int, *kinds: str) -> int:
    """How many graphs there were, all of them exact."""
    vela = find("vela")
    if vela is None:
        pytest.skip("Vela is not installed: tools/setup.sh test does that")
    words = ["-W", "ignore", "-m", "tests.npu.tosa_cases", str(folder), str(first), str(count), accelerator, *kinds]
    made = subprocess.run([vela.parent / "python", *words], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    for name, why in json.loads(made.stdout.splitlines()[-1]).items():
        allowed = [f"({op}) could not run on NPU" for op in NOT_FOR_U55]
        assert "u85" not in name and any(words in why for words in allowed), f"{name}: {why}"
    graphs = sorted(folder.glob("*.io.npz"))
    for io in graphs:
        case = read_case(io.with_name(io.name.replace(".io.npz", ".npz")), io)
        assert np.array_equal(case.answer(), case.right), io.name
    return len(graphs)


@pytest.mark.parametrize("accelerator", NAMES)
def test_a_few(accelerator: str, tmp_path: Path) -> None:
    assert exact(tmp_path, accelerator, 1000, 1, *SAMPLE) == len(SAMPLE)


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", NAMES)
def test_many(accelerator: str, tmp_path: Path) -> None:
    """Eleven accelerators of 200 graphs each."""
    assert exact(tmp_path, accelerator, 0, 6) >= 200

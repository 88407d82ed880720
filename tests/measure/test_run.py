"""One function that builds, runs and compares, and how long its stages take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import baretorch
from baretorch import stopwatch
from baretorch.errors import CompileError
from baretorch.exports.project import figures_of
from baretorch.frontends import from_module
from baretorch.measure.run import measure_model
from baretorch.options import Options, UseNpu
from baretorch.pipeline import Compiled, compile_source
from baretorch.stopwatch import timed, watch
from baretorch.targets.boards import load_board
from tests.wrong import zero_weights


def test_it_builds_runs_and_compares(tmp_path: Path) -> None:
    compiled = compile_source(from_module(nn.Linear(4, 2), (torch.randn(1, 4),), "net"), load_board("mps2-an386"))
    shown: list[str] = []
    with watch() as seconds:
        found = measure_model(compiled, tmp_path, lambda what, done, total: shown.append(what), other_inputs=True)
        assert found.facts.max_error < 1e-6 and not found.facts.mismatch
    assert list(seconds) == ["build", "emulate", "compare", "other", "total"]
    assert found.image.elf.parent == tmp_path and found.facts.calls == 4
    assert found.profile.instructions == found.run.instructions and found.time == found.facts.time
    assert (shown[0], shown[-1]) == ("build", "emulate") and any("model.c" in what for what in shown)
    again = measure_model(compiled, found.image)
    assert again.image is found.image and again.facts.calls == 2 and again.run.instructions == found.run.instructions


def without_weights() -> Compiled:
    """Return a quantized model whose C has zeros instead of all weights."""
    torch.manual_seed(0)
    source = from_module(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)), (torch.randn(1, 16),), "net")
    source = replace(source, calibration=list(torch.randn(16, 1, 16)))
    return zero_weights(compile_source(source, load_board("mps2-an386"), Options(int8=True)))


def test_a_wrong_int8_image_is_reported(tmp_path: Path) -> None:
    compiled = without_weights()
    found = measure_model(compiled, tmp_path)
    assert found.facts.mismatch and "of the int8 graph" in found.facts.warnings[-1]
    with pytest.raises(CompileError, match="wrong results on the emulated chip"):
        figures_of(compiled, found.image)
    with pytest.warns(UserWarning, match="of the int8 graph"):
        baretorch.Model(compiled).report(tmp_path / "report.html")


def test_the_time_of_an_npu_is_not_known(tmp_path: Path) -> None:
    """The instructions of the CPU are, but a time that is made of them alone would be too short."""
    source = from_module(nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU()), (torch.randn(1, 8, 8, 8),), "net")
    compiled = compile_source(source, load_board("corstone-300"), Options(int8=True, npu=UseNpu.AUTO))
    assert compiled.partition is not None and compiled.partition.regions
    found = measure_model(compiled, tmp_path)
    assert found.run.instructions and found.time is None and found.facts.time is None


def test_a_stage_inside_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.0, 5.0, 9.0, 10.0, 12.0, 13.0])
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: next(clock))
    with watch() as seconds:
        with timed("outer"), timed("inner"):
            pass
        with timed("inner"):
            pass
    assert seconds == {"inner": 3.0 + 2.0, "outer": 9.0 - 1.0 - 3.0, "other": 3.0, "total": 13.0}


def test_a_watch_inside_another_keeps_its_stages_apart() -> None:
    with watch() as seconds, timed("whole"), watch() as parts, timed("part"):
        pass
    assert list(seconds) == ["whole", "other", "total"] and list(parts) == ["part", "other", "total"]

"""Consecutive calls with different inputs: `run`, `monitor` and `evaluate` end with 1 where answers are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.frontends.consecutive_calls import consecutive_calls
from baretorch.frontends.inputs import variations
from baretorch.measure.facts import compare
from baretorch.options import Options
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch

FORGETFUL = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.h = torch.zeros(1, 4)
    def forward(self, x):
        self.h = self.h * 0.9 + self.a(x)
        return self.h
def model():
    torch.manual_seed(0)
    return Net()
def inputs(): return (torch.ones(1, 4),)
def sweep(): return [(torch.full((1, 4), float(i)),) for i in range(4)]
def evaluate(run): return {"sum": sum(float(run(*x).sum()) for x in sweep())}
"""
REMEMBERING = FORGETFUL.replace("self.h = torch.zeros(1, 4)", 'self.register_buffer("h", torch.zeros(1, 4))')
VERBS = [["run"], ["monitor"], ["evaluate", "--float"]]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_lost_state_is_an_error(verb: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing saw it before."""
    monkeypatch.setattr("baretorch.frontends.torch.export.check_attributes", lambda *_: False)
    (folder / "net.py").write_text(FORGETFUL)
    result = baretorch(*verb, "net.py", "--board", "host", "--json")
    assert result.code == 1
    assert any(text.startswith("inaccurate: ") for text in result.json()["warnings"])
    assert "warning: inaccurate: " in baretorch(*verb, "net.py", "--board", "host").out


@pytest.mark.parametrize("verb", [*VERBS, ["run", "--int8"], ["monitor", "--int8"]], ids=" ".join)
def test_a_registered_state_is_right(verb: list[str], folder: Path) -> None:
    (folder / "net.py").write_text(REMEMBERING + "def calibration(): return sweep()\n")
    result = baretorch(*verb, "net.py", "--board", "host", "--json")
    assert result.code == 0, result.err
    assert not any(text.startswith("inaccurate: ") for text in result.json()["warnings"])


def test_wrong_int8_answers_of_monitor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image is held against the int8 graph, however much int8 loses."""
    from baretorch.explore import sweep

    monkeypatch.setattr(sweep, "real_outputs", lambda graph, answer: tuple(y + 1 for y in answer))
    (folder / "net.py").write_text(REMEMBERING + "def calibration(): return sweep()\n")
    assert baretorch("monitor", "net.py", "--board", "host", "--int8", "--json").code == 1


EMBEDDING = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 4)
    def forward(self, x):
        return self.table(x - 3)
def model(): return Net()
def inputs(): return (torch.tensor([[4]]),)
"""


def test_inputs_that_the_reference_rejects(folder: Path) -> None:
    (folder / "net.py").write_text(EMBEDDING)
    result = baretorch("run", "net.py", "--board", "host", "--json")
    data = result.json()
    assert (result.code, data["calls"]) == (0, 2)
    assert data["warnings"][0].startswith("calls: 2 were compared; PyTorch rejects another input (forward() failed: ")


def test_figures_are_those_of_the_second_call(folder: Path) -> None:
    (folder / "net.py").write_text(REMEMBERING)
    source = pipeline.read("net.py")
    compiled = pipeline.compile_source(source, load_board("mps2-an386"), Options())
    image = pipeline.build_image(compiled, folder / "build")
    calls = consecutive_calls(source, compiled.graph, compiled.model.quantization is not None)
    plain, more = pipeline.run_image(compiled, image), pipeline.run_image(compiled, image, calls)
    assert (len(calls.others), len(more.others), plain.others) == (2, 2, ())
    assert more.instructions == plain.instructions is not None and more.blocks == plain.blocks
    facts = compare(compiled, image, more, calls)
    assert (facts.calls, facts.reference, facts.mismatch) == (4, "PyTorch", False)
    assert facts.max_error < 1e-5 and facts.largest > 1


def test_other_inputs_stay_within_the_example() -> None:
    import numpy as np

    real, tokens, one, zeros = np.float32([[1, -2, 4]]), np.int64([[3, 5, 7]]), np.int64([6]), np.zeros((1, 2), "f4")
    first, second = variations([real, tokens, one, zeros])
    assert first[0].tolist() == [[3, 0.75, -1.5]] and second[0].tolist() == [[-1, 2, 0.5]]
    assert first[1].tolist() == [[7, 3, 5]] and second[1].tolist() == [[5, 7, 3]]
    assert (first[2].tolist(), second[2].tolist()) == ([3], [0])
    assert first[3].any() and not np.array_equal(first[3], second[3])
    assert [x.dtype for x in first] == [x.dtype for x in second] == [x.dtype for x in (real, tokens, one, zeros)]

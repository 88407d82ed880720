"""Random modules: 25 in `make test`, 1,000 in `make test-all`. A wrong one is made small and left as a model file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ops.functions import Tanh
from tests.fuzz import ladder
from tests.fuzz.grow import grow
from tests.fuzz.ladder import Subject, Wrong, compiled, left, outcome, run_image, shrunk
from tests.fuzz.program import Program, Statement

EACH = 25  # programs of a batch, which share images
BATCHES = 40
QUICK = 1  # batches of `make test`
FLOAT, INT8 = 0, 1
# Which graphs run where; (board, optimize) in every batch, and those of the long run.
IMAGES = ((FLOAT, "host", "speed"), (INT8, "host", "size"), (INT8, "mps2-an386", "size"))
MORE = (
    *((INT8, "mps2-an386", "speed"), (INT8, "mps3-an547", "size"), (INT8, "mps2-an385-v6m", "size")),
    *((INT8, "virt-rv32", "size"), (INT8, "mps2-an505", "size"), (FLOAT, "mps2-an386", "size")),
    *((FLOAT, "mps3-an547", "size"), (FLOAT, "mps2-an385-v6m", "size"), (FLOAT, "virt-rv32", "size")),
)


@pytest.mark.parametrize("batch", [b if b < QUICK else pytest.param(b, marks=pytest.mark.slow) for b in range(BATCHES)])
def test_random_modules(batch: int, tmp_path: Path) -> None:
    programs = [grow(seed) for seed in range(batch * EACH, (batch + 1) * EACH)]
    subjects = []
    for program in programs:
        try:
            subjects.append(compiled(program))
        except (Wrong, CompileError, Exception) as error:
            pytest.fail(_told(program, f"{type(error).__name__}: {error}", tmp_path, ()))
    images = IMAGES if batch < QUICK else (*IMAGES, MORE[batch % len(MORE)], MORE[(batch + 4) % len(MORE)])
    for i, (which, board, optimize) in enumerate(images):
        for j, some in enumerate(_shares(subjects)):
            try:
                run_image(some, which, board, tmp_path / f"{i}-{j}", optimize)
            except Wrong as wrong:
                program = next(s.program for s in some if f"seed {s.program.seed}," in str(wrong))
                pytest.fail(_told(program, str(wrong), tmp_path, ((board, optimize),)))


def _shares(subjects: Sequence[Subject]) -> list[list[Subject]]:
    """Those of one image each: the protocol counts no more inputs and outputs."""
    shares: list[list[Subject]] = [[]]
    for s in subjects:
        ports = sum(len(t.program.inputs) + len(t.program.outputs) for t in (*shares[-1], s))
        if ports > ladder.PORTS:
            shares.append([])
        shares[-1].append(s)
    return shares


def _told(program: Program, error: str, folder: Path, boards: Sequence[tuple[str, str]]) -> str:
    return left(program, error, partial(outcome, folder=folder / "shrink", boards=boards))


def test_programs_have_all_kinds_of_statements() -> None:
    """The generator is worth its name: what it makes has layers, views, state, several outputs and in-place changes."""
    programs = [grow(seed) for seed in range(200)]
    text = [p.source() for p in programs]
    words = ("Conv2d", "Linear", "LSTM", "BatchNorm", "chunk", "permute", "cat(", "mul_(", "softmax", "max_pool")
    counts = Counter(word for t in text for word in words if word in t.partition("def model")[0])
    assert all(counts[word] >= 2 for word in words), counts
    assert sum("self.state" in t for t in text) > 15
    assert sum(len(p.outputs) > 1 for p in programs) > 30
    assert sum(len(p.inputs) > 1 for p in programs) > 30
    assert grow(3) == grow(3)


def test_a_wrong_rung_is_noticed_and_the_program_shrinks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tanh that is wrong in the interpreter: found, and all that has nothing to do with it is gone."""
    long = Program(
        1,
        (("x0", (1, 8)),),
        (
            Statement(("v1",), "v1 = x0 * 0.5"),
            Statement(("v2",), "v2 = self.layer2(v1)", "self.layer2 = nn.Linear(8, 8)"),
            Statement(("v3",), "v3 = torch.tanh(v2)"),
            Statement(("v4",), "v4 = torch.relu(v1)"),
            Statement(("v5",), "v5 = v3 + v4"),
        ),
        ("v5", "v4"),
    )
    assert outcome(long, tmp_path) == "right"
    true = Tanh.reference
    monkeypatch.setattr(Tanh, "reference", lambda self, *x: tuple(y * 1.01 for y in true(self, *x)))
    assert outcome(long, tmp_path) != "right"
    small = shrunk(long, partial(outcome, folder=tmp_path))
    assert [s.code for s in small.statements] == ["v3 = torch.tanh(x0)"]


def test_where_pt2e_has_no_answer_ours_is_held_against_float() -> None:
    right, theirs = np.array([0.0, 1.0]), np.array([np.nan, 1.0])
    ladder._judge_int8(0, right, theirs, right, False)
    for wrong in (np.array([0.5, 1.0]), np.array([np.nan, 1.0])):
        with pytest.raises(Wrong):
            ladder._judge_int8(0, wrong, theirs, right, False)

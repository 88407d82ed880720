"""Random modules whose tensors share memory: 40 in `make test`, 2,000 in `make test-all`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import Graph
from baretorch.plan import problem
from baretorch.plan.check import plan as check
from baretorch.plan.schedule import Step, View
from tests.fuzz.alias import grow_aliases
from tests.fuzz.aliased import Subject, outcome, prepared, run
from tests.fuzz.ladder import left
from tests.fuzz.program import Program, Statement
from tests.guarded import Fault

EACH = 40  # programs of a batch, which share one C program
BATCHES = 50
QUICK = 1  # batches of `make test`
REFUSED = (  # ends of errors that are right: the program does what an image cannot do, or torch.export cannot follow
    "torch.export cannot take this model apart",  # some that return an input that is also state
    "share memory, and a call changes it",
    "which is not a registered buffer: the change would be lost",
    "in a way that torch.export loses",
)


@pytest.mark.parametrize("batch", [b if b < QUICK else pytest.param(b, marks=pytest.mark.slow) for b in range(BATCHES)])
def test_random_aliases(batch: int, tmp_path: Path) -> None:
    """Each is right in PyTorch, as a Graph, and in C under sanitizers, in three calls in a row."""
    judge = partial(outcome, folder=tmp_path / "shrink")
    subjects: list[Subject] = []
    for seed in range(batch * EACH, (batch + 1) * EACH):
        try:
            subjects.append(prepared(grow_aliases(seed)))
        except Exception as error:
            if isinstance(error, CompileError) and error.what.endswith(REFUSED):
                continue  # few are: see the count below
            pytest.fail(left(grow_aliases(seed), f"{type(error).__name__}: {error}", judge))
    assert len(subjects) > 0.9 * EACH
    try:
        run(subjects, tmp_path / "all")
    except Fault as fault:
        seed = int(fault.model.partition("_")[0].removeprefix("s"))
        pytest.fail(left(grow_aliases(seed), str(fault), judge))


def test_programs_share_memory_in_all_ways() -> None:
    """The generator makes what it is there for."""
    programs = [grow_aliases(seed) for seed in range(400)]
    text = [p.source().partition("def model")[0] for p in programs]
    words = ("cat(", "stack(", "chunk(", "split(", "unbind(", "permute(", "reshape(", "slice_scatter(", "self.state")
    counts = Counter(word for t in text for word in words if word in t)
    assert all(counts[word] >= 10 for word in words), counts
    assert sum(len(set(p.outputs)) < len(p.outputs) for p in programs) > 40, "the same output twice"
    assert sum(any(o.startswith("x") for o in p.outputs) for p in programs) > 40, "inputs that are outputs"
    assert sum(_used_on(p.outputs, t) for p, t in zip(programs, text, strict=True)) > 40, "outputs that are used on"
    assert sum(t.count("register_buffer") > 1 for t in text) > 10, "several states"
    assert sum("return self" in t or "nn.Parameter" in t for t in text) > 10, "constants"
    assert grow_aliases(3) == grow_aliases(3)


def _used_on(outputs: tuple[str, ...], text: str) -> bool:
    body, _, _ = text.partition("return")
    return any(name.startswith("v") and body.count(name) > 1 for name in outputs)


def _all_lent(graph: Graph, steps: Sequence[Step], storage: Mapping[str, View]) -> frozenset[str]:
    return frozenset(storage[name].buffer for name in graph.outputs)


def test_a_buffer_that_two_outputs_own_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fault that this fuzzer is for: the plan's own check finds it, and without that the sanitizers."""
    whole = Statement(("v1",), "v1 = torch.tanh(x0)")
    program = Program(1, (("x0", (1, 4, 4)),), (whole, Statement(("v2",), "v2 = v1[:, -1]")), ("v1", "v2"))
    assert outcome(program, tmp_path / "right") == "right"
    monkeypatch.setattr(problem, "lent_buffers", _all_lent)
    assert outcome(program, tmp_path / "planned") == "internal: InternalError: 2 ports own tanh, which the caller lends"
    monkeypatch.setattr(check, "check_ports", lambda plan: None)
    assert "a model that was watched ended with code 1" in outcome(program, tmp_path / "run")

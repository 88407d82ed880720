"""Which of the candidates training and other steps are tried on, and which is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.frontends.choices import Offer
from baretorch.ir.graph import Builder, DType, Graph, Quant, with_data
from baretorch.ops.elementwise import Add
from baretorch.ops.linear import Linear
from baretorch.options import DEFAULT, Compiler, Options
from baretorch.quantize.config import apply_config, read_config, read_scales
from baretorch.quantize.precisions import Precision
from baretorch.targets.boards import load_board
from baretorch.tune.result import Budget, Candidate, Costs, or_no_number
from baretorch.tune.search import write_config
from baretorch.tune.study import MARK
from baretorch.tune.tuner import Confirmation, Tuner, Winner
from baretorch.tune.workbench import Benches, Choice, Variant


def graph(rows: int = 1) -> Graph:
    b = Builder()
    x = b.input("x", (rows, 2), DType.FLOAT32)
    return b.graph([x], [b.add(Linear(), x, b.const("w", np.ones((2, 2), np.float32)))])


@dataclass
class Taught(Tuner):
    """Training brings what a table says; no other step helps."""

    learned: Mapping[int, float] = field(default_factory=dict)
    asked: list[tuple[int, str]] = field(default_factory=list)

    def _try_step(self, winner: Winner, what: str, change: Callable[[Variant], Graph]) -> list[Winner]:
        flash = winner.candidate.flash
        self.asked.append((flash, what))
        if what != "training":
            return []
        return [replace(winner, candidate=replace(winner.candidate, accuracy=self.learned[flash]))]


def tuner(budget: Budget, learned: Mapping[int, float]) -> Taught:
    bench: Any = SimpleNamespace(graph=graph(), train=lambda model: None)
    return Taught(Benches(Offer(), lambda arguments: bench), "a", 0.99, budget, lambda *shown: None, learned=learned)


def test_other_samples_are_another_search() -> None:
    """The results of a search with few samples are not those of one with all."""
    assert len({named(samples=n) for n in (None, 10, 100)}) == 3


def test_another_model_file_is_another_search() -> None:
    """Its evaluate() may be another."""
    assert len({named(file=text) for text in ("", "a", "b")}) == 3


def named(
    board: str = "pico",
    faster: int = 0,
    rows: int = 1,
    options: Options = DEFAULT,
    samples: int | None = None,
    file: str = "",
) -> str:
    """Return the name of a model's study."""
    target = load_board(board)
    chip = replace(target.chip, clock_hz=target.chip.clock_hz + faster)
    bench: Any = SimpleNamespace(graph=graph(rows), board=replace(target, chip=chip), options=options)
    benches = Benches(Offer(), lambda arguments: bench)
    return Tuner(benches, "a", 0.99, Budget(0.98), lambda *shown: None, samples, file).name


def test_what_costs_otherwise_is_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board whose file was apply_config, a larger input, another compiler or Baretorch: and nothing else."""
    zig = replace(DEFAULT, toolchain=Compiler.ZIG)
    names = [named(), named(faster=1), named(rows=2), named(options=zig), named("pico2")]
    assert len({*names}) == 5
    seeds = [dict(os.environ, PYTHONHASHSEED=seed) for seed in "12"]
    command = [sys.executable, "-c", "from tests.tune.test_choice import named; print(named())"]
    again = [subprocess.check_output(command, text=True, env=seed, cwd=Path(__file__).parents[2]) for seed in seeds]
    assert again == [f"{names[0]}\n"] * 2
    monkeypatch.setattr("baretorch.tune.tuner.__version__", "0.0.1")
    assert named() not in names


def test_weights_may_have_any_name(tmp_path: Path) -> None:
    """Also those of parameters of NumPy's functions. Scalars stay scalars."""
    b, names = Builder(), ("file", "allow_pickle", "a/b", "../c", "é.npy")
    y = b.input("x", (1, 2), DType.FLOAT32)
    for name in names:
        y = b.add(Linear(), y, b.const(name, np.eye(2, dtype=np.float32) * len(name)))
    y = b.add(Add(), y, b.const("scalar", np.float32(3.0)))
    whole = b.graph(["x"], [y])
    write_config(Variant(Choice(), whole, {}, {}), {"x": Quant((0.5,), (3,))}, tmp_path, "pico")
    config = read_config(str(tmp_path / "tuned.toml"))
    blank = {n: with_data(t, np.zeros_like(t.data)) for n, t in whole.tensors.items() if t.data is not None}
    again = apply_config(replace(whole, tensors={**whole.tensors, **blank}), config)
    for name in (*names, "scalar"):
        np.testing.assert_array_equal(again[name].data, whole[name].data)  # type: ignore[arg-type]
    assert read_scales(whole, config) == {"x": Quant((0.5,), (3,))}


def test_other_calibration_data_is_another_search() -> None:
    """Also less of the same; last bits are nothing."""
    one, two = np.ones((1, 2), np.float32), np.full((1, 2), 2.0, np.float32)
    bench: Any = SimpleNamespace(graph=graph())
    tuning = Tuner(Benches(Offer(), lambda arguments: bench), "a", 0.99, Budget(0.98), lambda *shown: None)
    marks = []
    for samples in ([(one,), (two,)], [(one * 1.0001,), (two,)], [(one,), (one,)], [(one,)], [(one,)] * 3):
        bench.samples = samples
        marks.append(tuning.mark)
    told = {MARK: [marks[0].original, *marks[0].weights]}
    assert [mark.is_like(told) for mark in marks] == [True, True, False, False, False]


def test_what_has_no_number_is_never_chosen() -> None:
    """A candidate without an accuracy is not chosen, however large the allowed drop is, unless all are so; then its
    accuracy is not reported as a number."""
    tuning = tuner(Budget(-1e6), LEARNED)
    found = winners({30: or_no_number(float("nan")), 50: -20.0})
    assert tuning.best(found).candidate.flash == 50
    with pytest.raises(CompileError, match="none of 1") as error:
        tuner(Budget(0.98), LEARNED).best(found[:1])
    assert "no number" in error.value.render() and "1000000000" not in error.value.render()


def test_what_the_target_does_not_confirm_is_not_chosen() -> None:
    """Neither what is less accurate there, nor what is larger when it is built here."""
    tuning = tuner(Budget(0.98), LEARNED)
    graphs = {flash: graph() for flash in FOUND}
    built = {id(g): Costs(flash + 20 * (flash == 50), 0, 0) for flash, g in graphs.items()}
    tuning.bench.board, tuning.bench.costs = SimpleNamespace(name="pico"), lambda g: built[id(g)]  # type: ignore
    found = winners({30: 0.981, 50: 0.985, 60: 0.99})

    def confirm(variant: Variant) -> Confirmation:
        (flash,) = map(int, variant.choice.layers)
        return Confirmation(graphs[flash], 0.979 if flash == 30 else 0.985, 50, 800)

    best, confirmed = tuning.confirm(found, confirm)
    assert (best.candidate.flash, best.candidate.accuracy, confirmed.samples) == (70, 0.985, 50)
    assert [w.candidate.accuracy for w in found] == [0.979, 0.985, 0.99]
    assert tuning.notes == ["30 was not confirmed on the target: 0.9790"]
    limited = tuner(Budget(0.98, flash=65), LEARNED)
    limited.bench.board, limited.bench.costs = tuning.bench.board, tuning.bench.costs  # type: ignore
    best, _ = limited.confirm(winners({50: 0.995, 60: 0.985}), confirm)
    assert best.candidate.flash == 60 and limited.notes[0].endswith(": 5 bytes of flash too many, 0.9850")


def winners(found: Mapping[int, float]) -> list[Winner]:
    """Candidates by their bytes of flash, and their accuracy."""
    every = []
    for flash, accuracy in found.items():
        choice = Choice({str(flash): Precision.INT4})
        candidate = Candidate(str(flash), "", accuracy, flash, 0, 0, None)
        every.append(Winner(candidate, Variant(choice, cast(Graph, None), {}, {})))
    return every


def trained(asked: Sequence[tuple[int, str]]) -> list[int]:
    return [flash for flash, what in asked if what == "training"]


FOUND = {10: 0.5, 20: 0.8, 30: 0.9, 35: 0.85, 40: 0.93, 50: 0.985, 60: 0.99}
LEARNED = {10: 0.7, 20: 0.96, 30: 0.981, 40: 0.984, 50: 0.988, 60: 0.992}


def test_without_a_budget_of_bytes_small_ones_are_trained() -> None:
    """The best candidate without training has 50 bytes, so only smaller ones can replace it. First the middle one of
    those on the front is trained. It becomes good, so a smaller one is trained too, and does not."""
    tuning = tuner(Budget(0.98), LEARNED)
    found = winners(FOUND)
    better = tuning.improve(found)
    assert trained(tuning.asked) == [30, 20]
    best = tuning.best([*found, *better]).candidate
    assert (best.flash, best.accuracy) == (30, 0.981)
    assert {flash for flash, what in tuning.asked if what != "training"} == {20}, "the next that might do"


def test_where_training_does_not_suffice_a_larger_one_is_trained() -> None:
    tuning = tuner(Budget(0.983), LEARNED)
    found = winners(FOUND)
    better = tuning.improve(found)
    assert trained(tuning.asked) == [30, 40]
    assert tuning.best([*found, *better]).candidate.flash == 40


def test_where_nothing_keeps_the_accuracy_by_itself() -> None:
    tuning = tuner(Budget(0.983), LEARNED)
    found = winners({flash: accuracy for flash, accuracy in FOUND.items() if flash < 50})
    better = tuning.improve(found)
    assert tuning.best([*found, *better]).candidate.flash == 40


def test_with_a_budget_of_bytes_the_most_accurate_are_trained() -> None:
    tuning = tuner(Budget(0.98, flash=100), LEARNED)
    found = winners(FOUND)
    better = tuning.improve(found)
    assert trained(tuning.asked) == [60, 50, 40]
    assert tuning.best([*found, *better]).candidate.accuracy == 0.992


def test_of_equals_the_smallest_is_trained_and_chosen() -> None:
    tuning = tuner(Budget(0.98, flash=100), dict.fromkeys((30, 40, 50), 0.99))
    found = winners({60: 0.99, 50: 0.99, 40: 0.99, 30: 0.99, 20: 0.97})
    better = tuning.improve(found)
    assert trained(tuning.asked) == [30, 40, 50]
    assert {flash for flash, what in tuning.asked if what != "training"} == {30}
    assert tuning.best([*found, *better]).candidate.flash == 30


def test_within_the_budgets_the_fastest_of_equals_is_chosen() -> None:
    tuning = tuner(Budget(0.8, flash=17_000), {})
    figures = {"slow": (16_000, 21.0), "fast": (16_900, 9.0), "large": (18_000, 1.0)}
    found = []
    for label, (flash, ms) in figures.items():
        over = ("too large",) if flash > 17_000 else ()
        candidate = Candidate(label, "", 0.9, flash, 0, 0, ms, over=over)
        found.append(Winner(candidate, Variant(Choice(), cast(Graph, None), {}, {})))
    assert tuning.best(found).candidate.label == "fast"

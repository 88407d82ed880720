"""The result of a search: candidates, those that no other beats, and the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from baretorch.measure.numbers import figure

NO_NUMBER = -1e9  # the accuracy of a candidate so bad that it cannot be told: it loses to every other


def or_no_number(accuracy: float) -> float:
    return accuracy if isfinite(accuracy) else NO_NUMBER


def shown(accuracy: float) -> str:
    return "no number" if accuracy == NO_NUMBER else f"{accuracy:.4f}"


@dataclass(frozen=True)
class Candidate:
    """A choice, measured. `over` says of each budget that it exceeds by how much, in words; `lacks` is how much more it
    would take than the board has, beside that."""

    label: str
    choice: str
    accuracy: float
    flash: int
    ram: int
    instructions: int
    milliseconds: float | None
    over: tuple[str, ...] = ()
    lacks: float = 0.0

    def beats(self, other: Candidate) -> bool:
        """Return whether this is as good in everything, and better in something."""
        mine, others = ((-c.accuracy, c.flash, c.instructions) for c in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "choice": self.choice,
            "accuracy": self.accuracy,
            "flash": self.flash,
            "ram": self.ram,
            "instructions": self.instructions,
            "milliseconds": self.milliseconds,
            "over": list(self.over),
        }


@dataclass(frozen=True)
class Budget:
    """The limits that the user sets; `accuracy` is the metric of the original minus the allowed drop."""

    accuracy: float
    flash: int | None = None
    ram: int | None = None
    milliseconds: float | None = None
    metric: str = "accuracy"

    def words(self) -> Iterator[tuple[str, str]]:
        yield self.metric, f"at least {self.accuracy:.4f}"
        if self.flash is not None:
            yield "flash", f"at most {self.flash:,} bytes"
        if self.ram is not None:
            yield "RAM", f"at most {self.ram:,} bytes"
        if self.milliseconds is not None:
            yield "time", f"at most {figure(self.milliseconds)} ms"


@dataclass(frozen=True)
class TunedStep:
    """Something that was tried after the search, and kept if it helped."""

    what: str
    before: float
    after: float

    @property
    def kept(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True)
class Tuning:
    """The result of a search. `original` is the accuracy of the model itself; `noise` is what int4 would cost each
    layer, compared with the answer's power. `target` is the accuracy of the chosen candidate, made from its file, on
    the emulated board, which ran `target_samples` of all."""

    model: str
    board: str
    metric: str
    original: float
    budget: Budget
    whole: Candidate
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    steps: tuple[TunedStep, ...] = ()
    noise: Mapping[str, float] = field(default_factory=dict)
    target: float | None = None
    target_samples: int = 0
    samples: int = 0
    trials: int = 0
    notes: tuple[str, ...] = ()

    @property
    def front(self) -> list[Candidate]:
        """Candidates that no other beats, the smallest first."""
        every = [c for c in (*self.candidates, self.whole, self.chosen) if c.accuracy != NO_NUMBER]
        best = [c for c in every if not any(other.beats(c) for other in every)]
        return sorted({(c.flash, c.accuracy, c.instructions): c for c in best}.values(), key=lambda c: c.flash)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "board": self.board,
            "metric": self.metric,
            "original": self.original,
            "budget": {
                "accuracy": self.budget.accuracy,
                "flash": self.budget.flash,
                "ram": self.budget.ram,
                "milliseconds": self.budget.milliseconds,
            },
            "trials": self.trials,
            "int8": self.whole.to_json(),
            "chosen": self.chosen.to_json(),
            "front": [c.to_json() for c in self.front],
            "steps": [{"what": s.what, "before": s.before, "after": s.after, "kept": s.kept} for s in self.steps],
            "notes": list(self.notes),
            "target": {"accuracy": self.target, "samples": self.target_samples},
        }

"""The result of a search: candidates, their order, those that no other beats, and the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from baretorch.measure.numbers import figure

NO_NUMBER = -1e9  # the accuracy of a candidate whose metric is not a finite number: it loses to every other
RESOLUTION = 0.01  # points; smaller differences between accuracies do not count


def or_no_number(accuracy: float) -> float:
    return accuracy if isfinite(accuracy) else NO_NUMBER


def format_accuracy(accuracy: float) -> str:
    return "no number" if accuracy == NO_NUMBER else f"{accuracy:.4f}"


@dataclass(frozen=True)
class Costs:
    """Bytes and time of an image.

    `ram` is without weights that are copied only because there is room, except on a cluster, whose scratchpad is for
    weights. `instructions` are those of the layers, without the calls between them if these are counted separately. The
    time is not known if the image does not fit the board, or if all of its layers were measured before and no budget
    needs the time. `lacks` is the share of flash or RAM that the board lacks; 0 if the image fits.
    """

    flash: int
    ram: int
    instructions: int
    milliseconds: float | None = None
    lacks: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A measured choice. `over` describes each budget that it exceeds and by how much; `lacks` is that of Costs."""

    label: str
    choice: str
    accuracy: float
    flash: int
    ram: int
    instructions: int
    milliseconds: float | None
    lacks: float = 0.0
    over: tuple[str, ...] = ()

    def beats(self, other: Candidate) -> bool:
        """Return whether this is as good in everything, and better in something."""
        mine, others = ((-c.accuracy, c.flash, c.instructions) for c in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))

    def to_json(self) -> dict[str, Any]:
        data = asdict(self) | {"over": list(self.over)}
        del data["lacks"]
        return data


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
    """A step after the search, which is kept if it helps."""

    what: str
    before: float
    after: float

    @property
    def kept(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    `original` is the accuracy of the model itself. `noise` is the noise of each layer in int4, compared with the power
    of the outputs. `target` is the accuracy of the chosen candidate, compiled from its files, on the emulated board,
    which ran `target_samples` of all.
    """

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
        """Return the candidates that no other beats, the smallest first."""
        every = [c for c in (*self.candidates, self.whole, self.chosen) if c.accuracy != NO_NUMBER]
        best = [c for c in every if not any(other.beats(c) for other in every)]
        return sorted({(c.flash, c.accuracy, c.instructions): c for c in best}.values(), key=lambda c: c.flash)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "board": self.board,
            "metric": self.metric,
            "original": self.original,
            "budget": {key: value for key, value in asdict(self.budget).items() if key != "metric"},
            "trials": self.trials,
            "int8": self.whole.to_json(),
            "chosen": self.chosen.to_json(),
            "front": [c.to_json() for c in self.front],
            "steps": [asdict(s) | {"kept": s.kept} for s in self.steps],
            "notes": list(self.notes),
            "target": {"accuracy": self.target, "samples": self.target_samples},
        }


def points(original: float, count: float) -> float:
    """Convert points to the metric's own unit: hundredths for a metric up to 1, whole units for others."""
    return count / 100 if abs(original) <= 1 else count


def best_first(candidates: Sequence[Candidate], smallest: bool, equal: float) -> list[int]:
    """Return the numbers of the candidates, the best first.

    1. Candidates that meet all budgets but the accuracy's come before those that do not. A larger margin is not better.
    2. The smaller comes first, if the user wants the smallest.
    3. The more accurate comes first, unless the accuracies differ by less than `equal`.
    4. The faster comes first, then the smaller, then the one with less RAM, then the one that was found earlier.
    """
    left, order, costs = set(range(len(candidates))), list[int](), _costs(candidates)
    while left:
        some = {i for i in left if not candidates[i].over} or left
        if smallest:
            least = min(candidates[i].flash for i in some)
            some = {i for i in some if candidates[i].flash == least}
        highest = max(candidates[i].accuracy for i in some)
        alike = [i for i in some if highest - candidates[i].accuracy < equal]
        order += sorted(alike, key=lambda i: (costs[i], i))
        left.difference_update(alike)
    return order


def _costs(candidates: Sequence[Candidate]) -> list[tuple[float, int, int]]:
    """Return time, flash and RAM of each. Time is counted in instructions unless it is known for all."""
    known = [c.milliseconds for c in candidates if c.milliseconds is not None]
    times = known if len(known) == len(candidates) else [float(c.instructions) for c in candidates]
    return [(time, c.flash, c.ram) for time, c in zip(times, candidates, strict=True)]

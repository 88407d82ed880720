"""What a search found: candidates, those of them that no other beats, and the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from math import isfinite
from string import Template
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.escape import markup
from baretorch.measure.numbers import figure
from baretorch.report.html import Html, el, joined, line, svg, text
from baretorch.version import __version__

WIDTH, HEIGHT = 1000, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 20, 48  # around the plot
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
        """As good in everything, and better in something."""
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
    """What the user allows; accuracy, or what else the metric is, is that of the original without the drop."""

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
class Step:
    """Something that was tried after the search, and kept if it helped."""

    what: str
    before: float
    after: float

    @property
    def kept(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True)
class Tuning:
    """All of a search. `original` is the accuracy of the model itself, `noise` what int4 would cost each layer, beside
    the answer's power; `target` is the accuracy of the chosen one, as its file gives it, on the emulated board, which
    ran `target_samples` of all."""

    model: str
    board: str
    metric: str
    original: float
    budget: Budget
    whole: Candidate
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    steps: tuple[Step, ...] = ()
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


def _columns(tuning: Tuning) -> tuple[str, ...]:
    return "", tuning.metric, "flash", "RAM", "instructions", "ms", "choice"


def _row(tuning: Tuning, c: Candidate) -> tuple[str, ...]:
    ms = "" if c.milliseconds is None else figure(c.milliseconds)
    words = "; ".join(c.over)
    about = f"{c.choice} ({words})" if words else c.choice
    label = f"{c.label} (chosen)" if c == tuning.chosen else c.label
    return (label, f"{c.accuracy:.4f}", f"{c.flash:,}", f"{c.ram:,}", f"{c.instructions:,}", ms, about)


def tuning_screen(tuning: Tuning, made: Sequence[str], command: str) -> RenderableType:
    """The answer of `tune`: the front, what was chosen, and where it lies."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in _columns(tuning):
        table.add_column(markup(title), justify="left" if title in ("", "choice") else "right", overflow="fold")
    for c in tuning.front:
        lost = c.over or c.accuracy < tuning.budget.accuracy
        style = "green" if c == tuning.chosen else "dim" if lost else None
        table.add_row(*(markup(cell) for cell in _row(tuning, c)), style=style)
    parts: list[RenderableType] = [
        f"[bold]{markup(tuning.model)}[/] on {tuning.board}: {markup(tuning.metric)} {tuning.original:.4f} originally; "
        + ", ".join(f"{markup(name)} {words}" for name, words in tuning.budget.words()),
        "",
        table,
        "",
        *_verdict(tuning, tuning.steps),
        "",
        *(f"[dim]{'files' if i == 0 else '':10}[/] {markup(name)}" for i, name in enumerate(made)),
        f"[dim]{'again':10}[/] {markup(command)}",
    ]
    return Group(*parts)


def _verdict(tuning: Tuning, steps: Sequence[Step]) -> Iterator[str]:
    chosen, whole = tuning.chosen, tuning.whole
    less = (
        f"{chosen.flash / whole.flash:.0%} of the flash of plain int8 ({whole.flash:,} bytes, {shown(whole.accuracy)})"
    )
    yield f"chosen: [green]{markup(chosen.label)}[/], {markup(chosen.choice)}: {less}"
    for step in steps:
        word = "kept" if step.kept else "not kept"
        yield f"  {markup(step.what)}: {shown(step.before)} to {shown(step.after)}, {word}"
    yield from map(markup, tuning.notes)
    if tuning.target is not None:
        ran = f"the emulated board ran {tuning.target_samples:,} of {tuning.samples:,} inputs"
        yield f"on {tuning.board}: {shown(tuning.target)}; {ran}"


def tuning_page(tuning: Tuning, command: str) -> str:
    """One HTML page that needs nothing else; `command` runs what was chosen."""
    widest, low = _bounds(tuning)
    outside = sum(c.flash > widest or c.accuracy < low for c in tuning.candidates)
    rows = [
        el("tr", *(el("td", cell, class_=None if i in (0, 6) else "num") for i, cell in enumerate(_row(tuning, c))))
        for c in tuning.front
    ]
    head = el("tr", *(el("th", t, class_=None if t in ("", "choice") else "num") for t in _columns(tuning)))
    steps = [
        el("li", f"{s.what}: {shown(s.before)} to {shown(s.after)}, {'kept' if s.kept else 'not kept'}")
        for s in tuning.steps
    ]
    noise = [el("tr", el("td", el("code", n)), el("td", f"{v:.2%}", class_="num")) for n, v in tuning.noise.items()]
    folder = files("baretorch.report") / "template"
    parts = {
        "title": joined([f"{tuning.model} tuned for {tuning.board}"]),
        "css": (folder / "page.css").read_text("utf-8"),
        "budget": joined(el("li", f"{name}: {words}") for name, words in tuning.budget.words()),
        "plot": front_picture(tuning),
        "table": el("table", el("thead", head), el("tbody", *rows)),
        "chosen": joined(el("p", joined([_plain(words)])) for words in _verdict(tuning, ())),
        "steps": joined(steps) if steps else el("li", "none was tried"),
        "noise": el("table", el("tbody", *noise)),
        "trials": f"{tuning.trials} trial{'s' if tuning.trials != 1 else ''}",
        "outside": f"{outside} more {'lies' if outside == 1 else 'lie'} outside of the picture." if outside else "",
        "command": el("code", command),
        "version": joined([__version__]),
    }
    return Template((folder / "tune.html").read_text("utf-8")).substitute(parts)


def _plain(words: str) -> str:
    for tag in ("[green]", "[/]"):
        words = words.replace(tag, "")
    return words


@dataclass(frozen=True)
class _Axes:
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def front_picture(tuning: Tuning) -> Html:
    """Accuracy over flash: all candidates, the front of these two as a line, the budgets, and the one that was chosen.
    Candidates that lost far more than the budget allows lie below the picture, those that are larger than plain int8
    beside it."""
    widest, low = _bounds(tuning)
    every = [c for c in (*tuning.candidates, tuning.whole) if c.flash <= widest]
    high = max(tuning.original, *(c.accuracy for c in every))
    room = (high - low) * 0.08 or max(1.2 * (high - tuning.budget.accuracy), 0.01)
    axes = _Axes((0.0, widest), (low - room, high + room))
    parts = [*_grid(axes), *_limits(axes, tuning)]
    shown = [c for c in tuning.front if c.accuracy >= low and c in every]
    points = [axes.at(c.flash, c.accuracy) for c in _rising(shown)]
    if len(points) > 1:
        way = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(el("path", d=f"M{way}", class_="front"))
    for c in every:
        if c.accuracy >= low and c not in shown and c != tuning.whole:
            parts.append(_dot(axes, c, 3.5, "tried"))
    parts += [_dot(axes, c, 4.5, "best") for c in shown]
    parts.append(_dot(axes, tuning.whole, 5.5, "whole"))
    x, y = axes.at(tuning.whole.flash, tuning.whole.accuracy)
    parts.append(text(x, y + 20, "plain int8", "clear here middle"))
    if tuning.chosen.accuracy >= low:
        parts.append(_dot(axes, tuning.chosen, 8.0, "chosen"))
        x, y = axes.at(tuning.chosen.flash, tuning.chosen.accuracy)
        parts.append(
            text(x + 13, y + 20, f"chosen: {tuning.chosen.flash:,} bytes, {tuning.chosen.accuracy:.4f}", "clear here")
        )
    return svg(WIDTH, HEIGHT, "accuracy over flash of all candidates", *parts)


def _bounds(tuning: Tuning) -> tuple[float, float]:
    """The largest flash and the least accuracy that the picture shows."""
    widest = max(tuning.whole.flash, tuning.budget.flash or 0) * 1.12
    least = min(c.accuracy for c in (*tuning.candidates, tuning.whole) if c.flash <= widest)
    lost = max(tuning.original - tuning.budget.accuracy, 0.002)
    return widest, max(least, tuning.original - 6 * lost)


def _rising(front: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other beats in accuracy and flash: some only take fewer instructions."""
    ordered = sorted(front, key=lambda c: (c.flash, -c.accuracy))
    return [c for i, c in enumerate(ordered) if all(c.accuracy > before.accuracy for before in ordered[:i])]


def _dot(axes: _Axes, c: Candidate, radius: float, class_: str) -> Html:
    x, y = axes.at(c.flash, c.accuracy)
    return el("circle", el("title", f"{c.label}: {c.choice}"), cx=x, cy=y, r=radius, class_=class_)


def _grid(axes: _Axes) -> Iterator[Html]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in _ticks(axes.y, 6):
        _, y = axes.at(0, value)
        yield line(LEFT, y, right, y, "grid")
        yield text(LEFT - 8, y + 4, f"{value:.6g}", "end")
    for value in _ticks(axes.x, 8):
        x, _ = axes.at(value, axes.y[0])
        yield text(x, bottom + 18, f"{value / 1000:,.4g}", "middle")
    yield line(LEFT, bottom, right, bottom, "base")
    yield text(right, bottom + 38, "flash, thousands of bytes", "end")


def _ticks(span: tuple[float, float], count: int) -> list[float]:
    size = (span[1] - span[0]) / count
    unit = 10.0 ** int(f"{size:e}".partition("e")[2])
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= size)
    first = -(-span[0] // step)
    return [round((first + i) * step, 9) for i in range(count + 1) if (first + i) * step <= span[1]]


def _limits(axes: _Axes, tuning: Tuning) -> Iterator[Html]:
    """The lines first: words lie on them."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    words = []
    for value, what in ((tuning.original, "the original"), (tuning.budget.accuracy, "least accuracy")):
        _, y = axes.at(0, value)
        yield line(LEFT, y, right, y, "peak")
        words.append(text((LEFT + 2 * right) / 3, y - 5, f"{what}, {value:.4f}", "clear middle"))
    if tuning.budget.flash is not None:
        x, _ = axes.at(tuning.budget.flash, axes.y[0])
        yield line(x, TOP, x, bottom, "peak")
        words.append(text(x + 5, bottom - 8, f"most flash, {tuning.budget.flash:,}"))
    yield from words

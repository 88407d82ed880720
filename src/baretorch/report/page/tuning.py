"""Make an HTML page about the result of a search, with a picture of accuracy over flash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from baretorch.measure.numbers import ticks
from baretorch.report.page.html import Html, el, fill_template, joined, line_element, svg, text
from baretorch.report.terminal.tuning import cells_of, titles_of, verdict
from baretorch.tune.result import Candidate, Tuning, format_accuracy

WIDTH, HEIGHT = 1000, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 20, 48  # around the plot


def tuning_page(tuning: Tuning, command: str) -> str:
    """Return one HTML page that needs no other files; `command` runs the chosen candidate."""
    widest, low = _bounds(tuning)
    outside = sum(c.flash > widest or c.accuracy < low for c in tuning.candidates)
    titles = titles_of(tuning)
    styles = ["num" if t.startswith("#") else None for t in titles]
    head = el("tr", *(el("th", t.removeprefix("#"), class_=style) for t, style in zip(titles, styles, strict=True)))
    rows = [
        el("tr", *(el("td", cell, class_=style) for cell, style in zip(cells_of(tuning, c), styles, strict=True)))
        for c in tuning.front
    ]
    steps = [
        el(
            "li",
            f"{s.what}: {format_accuracy(s.before)} to {format_accuracy(s.after)}, {'kept' if s.kept else 'not kept'}",
        )
        for s in tuning.steps
    ]
    noise = [el("tr", el("td", el("code", n)), el("td", f"{v:.2%}", class_="num")) for n, v in tuning.noise.items()]
    parts = {
        "title": joined([f"{tuning.model} tuned for {tuning.board}"]),
        "budget": joined(el("li", f"{name}: {words}") for name, words in tuning.budget.words()),
        "plot": front_picture(tuning),
        "table": el("table", el("thead", head), el("tbody", *rows)),
        "chosen": joined(el("p", joined([_plain(words)])) for words in verdict(tuning, ())),
        "steps": joined(steps) if steps else el("li", "none was tried"),
        "noise": el("table", el("tbody", *noise)),
        "trials": f"{tuning.trials} trial{'s' if tuning.trials != 1 else ''}",
        "outside": f"{outside} more {'is' if outside == 1 else 'are'} outside of the picture." if outside else "",
        "command": el("code", command),
    }
    return fill_template("tune.html", parts)


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
    """Draw accuracy over flash: all candidates, their front as a line, the budgets, and the chosen candidate.
    Candidates that lost far more than the budget allows, or are larger than plain int8, are outside of the picture."""
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
    """Return the largest flash and the lowest accuracy that the picture shows."""
    widest = max(tuning.whole.flash, tuning.budget.flash or 0) * 1.12
    least = min(c.accuracy for c in (*tuning.candidates, tuning.whole) if c.flash <= widest)
    lost = max(tuning.original - tuning.budget.accuracy, 0.002)
    return widest, max(least, tuning.original - 6 * lost)


def _rising(front: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other beats in accuracy and flash: some only take fewer instructions."""
    ordered = sorted(front, key=lambda c: (c.flash, -c.accuracy))
    return [c for i, c in enumerate(ordered) if all(c.accuracy > before.accuracy for before in ordered[:i])]


def _dot(axes: _Axes, c: Candidate, radius: float, class_: str) -> Html:
    x, y = axes.at(c.flash, c.accuracy)
    return el("circle", el("title", f"{c.label}: {c.choice}"), cx=x, cy=y, r=radius, class_=class_)


def _grid(axes: _Axes) -> Iterator[Html]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in ticks(*axes.y, 6):
        _, y = axes.at(0, value)
        yield line_element(LEFT, y, right, y, "grid")
        yield text(LEFT - 8, y + 4, f"{value:.6g}", "end")
    for value in ticks(*axes.x, 8):
        x, _ = axes.at(value, axes.y[0])
        yield text(x, bottom + 18, f"{value / 1000:,.4g}", "middle")
    yield line_element(LEFT, bottom, right, bottom, "base")
    yield text(right, bottom + 38, "flash, thousands of bytes", "end")


def _limits(axes: _Axes, tuning: Tuning) -> Iterator[Html]:
    """Draw the budgets: first the lines, then the words on top of them."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    words = []
    for value, what in ((tuning.original, "the original"), (tuning.budget.accuracy, "least accuracy")):
        _, y = axes.at(0, value)
        yield line_element(LEFT, y, right, y, "peak")
        words.append(text((LEFT + 2 * right) / 3, y - 5, f"{what}, {value:.4f}", "clear middle"))
    if tuning.budget.flash is not None:
        x, _ = axes.at(tuning.budget.flash, axes.y[0])
        yield line_element(x, TOP, x, bottom, "peak")
        words.append(text(x + 5, bottom - 8, f"most flash, {tuning.budget.flash:,}"))
    yield from words

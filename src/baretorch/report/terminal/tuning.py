"""Show the result of a search in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from baretorch.escape import markup
from baretorch.measure.numbers import figure
from baretorch.report.terminal.layout import columns
from baretorch.tune.result import Candidate, TunedStep, Tuning, format_accuracy


def titles_of(tuning: Tuning) -> tuple[str, ...]:
    """Return the titles of the columns; those of numbers begin with #."""
    return "", f"#{tuning.metric}", "#flash", "#RAM", "#instructions", "#ms", "choice"


def cells_of(tuning: Tuning, c: Candidate) -> tuple[str, ...]:
    """Return the cells of a candidate."""
    ms = "" if c.milliseconds is None else figure(c.milliseconds)
    words = "; ".join(c.over)
    about = f"{c.choice} ({words})" if words else c.choice
    label = f"{c.label} (chosen)" if c == tuning.chosen else c.label
    return (label, f"{c.accuracy:.4f}", f"{c.flash:,}", f"{c.ram:,}", f"{c.instructions:,}", ms, about)


def tuning_screen(tuning: Tuning, made: Sequence[str], command: str) -> RenderableType:
    """Return the answer of `tune`: the front, the chosen candidate, and its files."""
    table = columns(*map(markup, titles_of(tuning)))
    for c in tuning.front:
        lost = c.over or c.accuracy < tuning.budget.accuracy
        style = "green" if c == tuning.chosen else "dim" if lost else None
        table.add_row(*(markup(cell) for cell in cells_of(tuning, c)), style=style)
    parts: list[RenderableType] = [
        f"[bold]{markup(tuning.model)}[/] on {tuning.board}: the original has {markup(tuning.metric)} "
        f"{tuning.original:.4f}",
        "budgets: " + ", ".join(f"{markup(name)} {words}" for name, words in tuning.budget.words()),
        "",
        table,
        "",
        *verdict(tuning, tuning.steps),
        "",
        *(f"[dim]{'files' if i == 0 else '':10}[/] {markup(name)}" for i, name in enumerate(made)),
        f"[dim]{'to run it':10}[/] {markup(command)}",
    ]
    return Group(*parts)


def verdict(tuning: Tuning, steps: Sequence[TunedStep]) -> Iterator[str]:
    """Describe the chosen candidate, line by line, in rich's markup."""
    chosen, whole = tuning.chosen, tuning.whole
    plain = f"plain int8 ({whole.flash:,} bytes, {format_accuracy(whole.accuracy)})"
    less = f"it needs {chosen.flash / whole.flash:.0%} of the flash of {plain}"
    yield f"chosen: [green]{markup(chosen.label)}[/] ({markup(chosen.choice)}); {less}"
    for step in steps:
        word = "kept" if step.kept else "not kept"
        yield f"  {markup(step.what)}: from {format_accuracy(step.before)} to {format_accuracy(step.after)}, {word}"
    yield from map(markup, tuning.notes)
    if tuning.target is not None:
        ran = f"measured with {tuning.target_samples:,} of {tuning.samples:,} inputs on the emulated board"
        yield f"on {tuning.board}: {format_accuracy(tuning.target)}, {ran}"

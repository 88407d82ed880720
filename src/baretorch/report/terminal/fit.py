"""Which boards hold a model, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.escape import markup
from baretorch.measure.cycles import milliseconds
from baretorch.measure.numbers import bar, figure, share
from baretorch.options import Options

if TYPE_CHECKING:
    from baretorch.explore.fit import Finding, MemoryUse, Trial

_BAR = 10


def fit_screen(model: str, dtype: str, given: Options, findings: Sequence[Finding], notes: Sequence[str]) -> Group:
    """The answer of `fit`: a row per board, and below what makes the model fit those it does not."""
    good = sum(f.as_is is not None and f.as_is.fits for f in findings)
    parts: list[RenderableType] = [
        f"[bold]{markup(model)}[/] {dtype}  fits {good} of {len(findings)} boards as it is",
        "",
        _boards(findings),
    ]
    if any(f.as_is and not f.as_is.measured for f in findings):
        parts.append("[dim]~ estimate: the same code was measured for another board with this CPU[/]")
    if any(f.as_is and not f.as_is.fits for f in findings):
        parts += ["", "[bold]options that make it fit[/]", *_changes(findings, given)]
    return Group(*parts, *(f"[yellow]note:[/] {markup(note)}" for note in notes))


def _boards(findings: Sequence[Finding]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    timed = ("time\nms", "of it\nflash") if any(found.time for found in findings) else ()
    for title in ("board", "CPU", "", "flash", "", "left", "RAM", "", "left", *timed):
        table.add_column(title, justify="right" if title in ("left", "", *timed) else "left", no_wrap=True)
    for found in findings:
        board, trial = found.board, found.as_is
        if trial is None:
            reason = found.error.what if found.error else ""
            table.add_row(board.name, board.chip.cpu.name, "[yellow]?[/]", f"[yellow]{markup(reason)}[/]")
            continue
        word = "[green]fits[/]" if trial.fits else "[red]no[/]"
        mark = "" if trial.measured else "~"
        cells = (*_cells(trial.flash, mark), *_cells(_fullest(trial), ""), *(_time(found) if timed else ()))
        table.add_row(board.name, board.chip.cpu.name, word, *cells)
    return table


def _time(found: Finding) -> tuple[str, str]:
    """Return the time of the model as it fits, possibly with a change that is listed below."""
    time = found.time
    if time is None:
        return "", ""
    ms = figure(milliseconds(time.all.expected, found.board.chip.clock_hz))
    return ms, share(time.flash.waits.expected, time.all.expected) if time.flash else ""


def _cells(use: MemoryUse, mark: str) -> tuple[str, str, str]:
    colour = "red" if use.room < 0 else "cyan"
    left = f"{mark}{use.room:,}"
    drawn = bar(use.need, use.memory.size, _BAR)
    return f"[{colour}]{drawn}[/]", share(use.need, use.memory.size), f"[red]{left}[/]" if use.room < 0 else left


def _fullest(trial: Trial) -> MemoryUse:
    """Return the bank of RAM with the least room: a model that does not fit one bank does not fit."""
    return min(trial.uses[1:], key=lambda use: use.room) if trial.short_of_ram else trial.ram


def _changes(findings: Sequence[Finding], given: Options) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for found in findings:
        if found.as_is is None or found.as_is.fits:
            continue
        trial = found.change
        if trial is None:
            continue
        words = " ".join(trial.options.words(given))
        uses = ", ".join(f"{share(use.need, use.memory.size)} of {use.memory.name}" for use in trial.uses)
        table.add_row(found.board.name, f"[green]{markup(words)}[/]", uses, str(trial.bands or ""))
    lost = [f"{f.board.name}: {markup(f.advice)}" for f in findings if f.advice]
    return [*([table] if table.row_count else []), *lost]

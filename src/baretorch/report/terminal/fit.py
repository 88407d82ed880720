"""Show in the terminal which boards hold a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from baretorch.escape import markup
from baretorch.measure.cycles import milliseconds
from baretorch.measure.numbers import bar, figure, share
from baretorch.options import Options
from baretorch.report.terminal.layout import Narrowing, columns, warnings

if TYPE_CHECKING:
    from baretorch.explore.fit import Finding, Trial
    from baretorch.measure.sizes import MemoryUse

_BAR = 10


def fit_screen(
    model: str,
    dtype: str,
    given: Options,
    findings: Sequence[Finding],
    notes: Sequence[str],
    warned: Sequence[str],
) -> Group:
    """Return the answer of `fit`: a row per board, and the options that make the model fit the others."""
    good = sum(f.as_is is not None and f.as_is.fits for f in findings)
    parts: list[RenderableType] = [
        f"[bold]{markup(model)}[/] {dtype}  fits {good} of {len(findings)} boards as it is",
        "",
        _boards(findings),
    ]
    if any(f.as_is and not f.as_is.measured for f in findings):
        parts.append("[dim]~ estimated: the same code was built and measured for another board with this CPU[/]")
    if any(f.as_is and not f.as_is.fits for f in findings):
        parts += _changes(findings, given)
    return Group(*parts, *(f"[yellow]note:[/] {markup(note)}" for note in notes), *warnings(warned))


def _boards(findings: Sequence[Finding]) -> Narrowing:
    times = ("#time\nms", "#waits\nfor flash") if any(found.time for found in findings) else ()
    table = columns("board", "CPU", "#", "flash", "#", "#left", "RAM", "#", "#left", *times)
    for column in table.columns:
        column.no_wrap = True
    for found in findings:
        board, trial = found.board, found.as_is
        if trial is None:
            reason = found.error.what if found.error else ""
            table.add_row(board.name, board.chip.cpu.name, "[yellow]?[/]", f"[yellow]{markup(reason)}[/]")
            continue
        word = "[green]fits[/]" if trial.fits else "[red]no[/]"
        mark = "" if trial.measured else "~"
        cells = (*_cells(trial.flash, mark), *_cells(_fullest(trial), ""), *(_time(found) if times else ()))
        table.add_row(board.name, board.chip.cpu.name, word, *cells)
    return Narrowing(table, [(3, 6), (1,), (10,) if times else (), (5, 8)])


def _time(found: Finding) -> tuple[str, str]:
    """Return the time of the model, with the change that makes it fit if it needs one."""
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
    table = columns("", "", "", "")
    table.show_header = False
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
    parts: list[RenderableType] = ["", "[bold]options that make it fit[/]", table] if table.row_count else []
    return [*parts, "", "[bold]too large with all options[/]", *lost] if lost else parts

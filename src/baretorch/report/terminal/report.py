"""Show a Report in the terminal, with the same facts as on the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.measure.layers import LayerRow, Peak, layer_of_buffer
from baretorch.measure.memory_map import BankMap
from baretorch.measure.numbers import bar, distinct_names, portion, share, shorten_name
from baretorch.plan.types import Plan
from baretorch.report.findings import Figure, Report
from baretorch.report.terminal.evaluation import metrics_table
from baretorch.report.terminal.layout import BAR, Narrowing, columns, figure_grid, warnings
from baretorch.report.terminal.lifetimes import Lifetimes
from baretorch.report.terminal.tables import heading, npu_rows


def report_screen(report: Report, path: Path) -> RenderableType:
    """Return the answer of `report`."""
    facts, plan = report.facts, report.plan
    parts: list[RenderableType] = [heading(facts.compiled, facts.image, facts.run.emulator), ""]
    parts += [_figures((*report.ram(), *report.flash(), *report.speed(), *report.accuracy())), ""]
    if facts.compiled.partition is not None:
        npu = figure_grid()
        npu_rows(npu, facts.compiled)
        parts += [npu, ""]
    parts += ["[bold]memory map[/]", _map(report.banks), ""]
    parts += [f"[bold]tensor lifetimes[/]  arena {plan.arena:,} bytes, {plan.proof}", Lifetimes(plan), ""]
    if report.peak:
        parts += [_peak(report.peak, plan), ""]
    parts += [_layers(report), ""]
    if report.evaluation:
        parts += [metrics_table(report.evaluation), ""]
    parts += [_list("left in float", [f"{layer}: {why}" for layer, why in report.floats])] if report.floats else []
    advice = [f"{a.option}  {a.text}".strip() for a in report.advice]
    parts += [_list("how to make it smaller", advice)] if advice else []
    parts += warnings(facts.other_warnings)
    return Group(*parts, "", Text.assemble("page  ", (str(path), "cyan")))


def _figures(figures: Sequence[Figure]) -> Table:
    table = figure_grid()
    for f in figures:
        table.add_row(f.title, f"[bold]{f.value}[/]", markup(f"{f.unit}, {f.note}" if f.unit else f.note))
    return table


def _map(banks: Sequence[BankMap]) -> Table:
    table = figure_grid(bars=True)
    for bank in banks:
        memory = bank.memory
        table.add_row(memory.name, f"{bank.used:,}", f"at {memory.origin:#010x}", portion(bank.used, memory.size))
        for p in bank.pieces:
            drawn = f"[cyan]{bar(p.size, bank.used, BAR)}[/]"
            table.add_row(f"  [dim]{markup(p.name)}[/]", f"{p.size:,}", drawn, share(p.size, bank.used))
    return table


def _peak(peak: Peak, plan: Plan) -> Table:
    table = columns(
        f"peak: {peak.live:,} bytes at step {peak.step}, {markup(shorten_name(peak.layer))}", "#bytes", "layer"
    )
    for b in peak.buffers:
        table.add_row(markup(shorten_name(b.name)), f"{b.size:,}", markup(shorten_name(layer_of_buffer(plan, b))))
    return table


def _layers(report: Report) -> Narrowing:
    speed, part = ("#flash\ncycles", "#share\nof time") if report.profile.time.flash else ("#per MAC", "#share")
    numbers = ("#MACs", "#weights", "#instructions", speed, *(["#SQNR"] if report.int8 else []), part)
    table = columns("layer", "operator", "output", "kernel", *numbers)
    width = BAR // 2 if report.profile.time.flash else BAR
    table.add_column("", no_wrap=True, min_width=width)
    most = max((row.weight for row in report.rows), default=0)
    for name, row in zip(distinct_names([row.name for row in report.rows]), report.rows, strict=True):
        table.add_row(markup(name), *_layer(row, report), f"[cyan]{bar(row.weight, most, width)}[/]")
    return Narrowing(table, [(len(table.columns) - 1,), (4,), (7,), (5,), (3,), (2,)])


def _layer(row: LayerRow, report: Report) -> list[str]:
    db = row.accuracy.sqnr_db if row.accuracy else None
    per_mac = "" if row.per_mac is None else f"{row.per_mac:.2f}"
    flash = row.time.flash
    return [
        row.op,
        f"{row.dtype} {'×'.join(map(str, row.shape))}",
        f"[dim]{row.variant}[/]",
        f"{row.macs:,}" if row.macs else "",
        f"{row.weights:,}" if row.weights else "",
        f"{row.instructions:,}",
        per_mac if flash is None else f"{flash.waits.expected:,.0f}",
        *(["" if db is None else f"{db:.1f}"] if report.int8 else []),
        share(row.weight, report.profile.weight or 1),
    ]


def _list(title: str, lines: Sequence[str]) -> RenderableType:
    return Group(f"[bold]{title}[/]", *(Text(f"  {line}") for line in lines))

"""Show a task's metrics in the terminal, measured in the original library, on the host and on the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.escape import markup
from baretorch.passes.to_int8 import float_layers
from baretorch.report.terminal.layout import columns, warnings

if TYPE_CHECKING:
    from baretorch.explore.evaluate import Column, Evaluation


def evaluation_screen(evaluation: Evaluation) -> RenderableType:
    """Return the answer of `evaluate`."""
    return Group(
        metrics_table(evaluation),
        "",
        _coverage(evaluation),
        *(f"in float: {markup(name)}" for name in float_layers(evaluation.compiled.graph)),
        *warnings(evaluation.warnings),
    )


def metrics_table(evaluation: Evaluation) -> Table:
    """Return a table with a row per metric and a column per way to run the model."""
    table = columns("", *(f"#{markup(column.title)}" for column in evaluation.columns), apart=3)
    for name in evaluation.columns[0].metrics:
        table.add_row(markup(name), *(_figure(c.metrics.get(name)) for c in evaluation.columns))
    table.add_row("[dim]inputs per second here[/]", *(f"[dim]{_rate(evaluation, c)}[/]" for c in evaluation.columns))
    return table


def _coverage(evaluation: Evaluation) -> str:
    """Describe how many inputs the figures of the last column are measured with."""
    graph, board = evaluation.compiled.graph, evaluation.compiled.board.name
    exact = graph.is_int8 and not float_layers(graph)
    equal = "bit for bit the host's results" if exact else "the host's results except for rounding"
    if evaluation.target_samples == evaluation.samples:
        return f"{evaluation.samples:,} inputs, all of them on {board} ({evaluation.where}): {equal}"
    return (
        f"{evaluation.samples:,} inputs; {evaluation.target_samples:,} of them on {board} ({evaluation.where}), which "
        f"returned {equal}; the rest are the host's results"
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if abs(value) < 1e4 else f"{value:,.0f}"


def _rate(evaluation: Evaluation, column: Column) -> str:
    count = evaluation.target_samples if column.key == "target" else evaluation.samples
    return f"{count / column.seconds:,.0f}" if column.seconds > 0 else ""

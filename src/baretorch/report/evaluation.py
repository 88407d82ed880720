"""A task's metrics, measured in PyTorch, on the host and on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.measure.facts import is_int8, number
from baretorch.passes.to_int8 import float_layers

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled


@dataclass(frozen=True)
class Column:
    """What evaluate() found of one way to run the model: `key` for JSON, `title` for people."""

    key: str
    title: str
    metrics: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """`target_samples` of the `samples` ran on the target, `where`: an emulator's name or a port; the host's answers
    stand for the others."""

    compiled: Compiled
    where: str
    samples: int
    target_samples: int
    columns: tuple[Column, ...]
    wrong: str | None = None  # in words, that the answers are not those of the model's own library

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.compiled.source.warnings, *([self.wrong] if self.wrong else []))

    def to_json(self) -> dict[str, Any]:
        graph = self.compiled.graph
        return {
            "model": graph.name,
            "board": self.compiled.board.name,
            "where": self.where,
            "dtype": "int8" if is_int8(graph) else "float32",
            "samples": self.samples,
            "target_samples": self.target_samples,
            "metrics": {c.key: {name: number(value) for name, value in c.metrics.items()} for c in self.columns},
            "seconds": {c.key: round(c.seconds, 3) for c in self.columns},
            "float_layers": float_layers(graph),
            "warnings": list(self.warnings),
        }


def evaluation_screen(evaluation: Evaluation) -> RenderableType:
    """The answer of `evaluate`."""
    return Group(
        metrics_table(evaluation),
        "",
        _covered(evaluation),
        *(f"in float: {markup(name)}" for name in float_layers(evaluation.compiled.graph)),
        *(Text.assemble(("warning: ", "bold yellow"), w) for w in evaluation.warnings),
    )


def metrics_table(evaluation: Evaluation) -> Table:
    """A row per metric, a column per way to run."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("")
    for column in evaluation.columns:
        table.add_column(markup(column.title), justify="right")
    for name in evaluation.columns[0].metrics:
        table.add_row(markup(name), *(_figure(c.metrics.get(name)) for c in evaluation.columns))
    table.add_row("[dim]inputs per second here[/]", *(f"[dim]{_rate(evaluation, c)}[/]" for c in evaluation.columns))
    return table


def _covered(evaluation: Evaluation) -> str:
    """What the figures of the last column rest on."""
    graph, board = evaluation.compiled.graph, evaluation.compiled.board.name
    exact = is_int8(graph) and not float_layers(graph)
    equal = "bit for bit the host's answers" if exact else "the host's answers but for rounding"
    if evaluation.target_samples == evaluation.samples:
        return f"{evaluation.samples:,} inputs, all of them on {board} ({evaluation.where}): {equal}"
    return (
        f"{evaluation.samples:,} inputs; {evaluation.target_samples:,} of them on {board} ({evaluation.where}), which "
        f"gave {equal}; the host's stand for the rest"
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if abs(value) < 1e4 else f"{value:,.0f}"


def _rate(evaluation: Evaluation, column: Column) -> str:
    count = evaluation.target_samples if column.key == "target" else evaluation.samples
    return f"{count / column.seconds:,.0f}" if column.seconds > 0 else ""

"""Which kernels were tried for a model's layers, and what they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.escape import markup
from baretorch.plan.choices import Cost, Row
from baretorch.targets.types import Board


@dataclass(frozen=True)
class Measured:
    """A run: what all of it took, and each kind of layer, if that is known; and the arena."""

    whole: Cost
    layers: Mapping[str, Cost]
    arena: int

    def to_json(self) -> dict[str, int]:
        return {"cycles": self.whole.cycles, "instructions": self.whole.instructions, "arena": self.arena}


@dataclass(frozen=True)
class Searched:
    """What was found: a choice for every kind of layer that had one, and runs without and with them."""

    choices: tuple[Row, ...]
    before: Measured
    after: Measured
    built: int  # images
    known: int  # that had been measured already, perhaps by this very search

    @property
    def changed(self) -> tuple[Row, ...]:
        """The choices that are not what the planner takes by itself, which was tried first."""
        return tuple(c for c in self.choices if c.take != next(iter(c.tried)))

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "built": self.built,
            "known": self.known,
            "choices": [c.to_json() for c in self.choices],
        }


def kernels_screen(model: str, board: Board, found: Searched, by: str, path: Path) -> Group:
    """The answer of `tune-kernels`: a row per kind of layer that takes another kernel than before, and all together."""
    kinds = len({choice.layer for choice in found.choices})
    head = f"[bold]{markup(model)}[/] on {markup(board.name)}, {kinds} kinds of layers with a choice"
    parts: list[RenderableType] = [head, ""]
    if found.changed:
        parts += [_table(found), ""]
    before, after = found.before, found.after
    parts += [
        f"cycles        {before.whole.cycles:>12,} -> {after.whole.cycles:,}",
        f"instructions  {before.whole.instructions:>12,} -> {after.whole.instructions:,}",
        f"arena         {before.arena:>12,} -> {after.arena:,}",
        "",
        f"{found.built} images measured, {found.known} known already; the least {by} count",
        f"[dim]written to {markup(str(path))}, for --kernels[/]",
    ]
    return Group(*parts)


def _table(found: Searched) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("layer", "kernel", "cycles", "instead of", "cycles"):
        table.add_column(title, justify="right" if title == "cycles" else "left", overflow="fold")
    for choice in found.changed:
        tried: Mapping[str, Cost] = {str(way): cost for way, cost in choice.tried.items()}
        usual = next(iter(tried))
        now, was = tried[str(choice.take)], tried[usual]
        cells = (choice.layer, str(choice.take), f"{now.cycles:,}", usual, f"{was.cycles:,}")
        table.add_row(*map(markup, cells))
    return table

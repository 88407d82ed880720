"""Write Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> list[str]:
    """Return the lines of a table. `align` has a letter per column, l or r; columns without one are aligned left."""
    rule = "|".join("--:" if side == "r" else "---" for side in align.ljust(len(titles), "l"))
    return [f"| {' | '.join(titles)} |", f"|{rule}|", *(f"| {' | '.join(map(cell, row))} |" for row in rows)]


def cell(text: str) -> str:
    """Escape text for a cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")

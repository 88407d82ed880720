"""Write rows of Markdown tables, and sections of docs/benchmarks.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
Row = dict[str, Any]


def line(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def compare(have: int | None, goal: int | None) -> tuple[str, str]:
    """Return the cells of a goal and of our figure divided by it, in bold if it is larger than 1."""
    if have is None or not goal:
        return "–", ""
    part = f"{have / goal:.2f}"
    return f"{goal:,}", part if have <= goal else f"**{part}**"


def replace_section(text: str) -> None:
    """Write a section of the page in place of the one with the same title, and print it."""
    title = text.partition("\n")[0]
    before, _, rest = PAGE.read_text().partition(f"{title}\n")
    after = re.search(r"^## .*", rest, re.DOTALL | re.MULTILINE)
    PAGE.write_text(f"{before}{text}\n{after[0]}" if after else f"{before}{text}")
    print(text)

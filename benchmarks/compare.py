"""Compare two results of `make bench`: no figure may get worse.

    python benchmarks/compare.py BEFORE.json AFTER.json

prints the changes as a table. The exit code is 1 if instructions, model code, weights, arena or stack of any model on
any board got worse, or if a row is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIGURES = {
    "instructions": lambda row: row["instructions"],
    "model code": lambda row: row["flash"]["model_code"],
    "weights": lambda row: row["flash"]["weights"],
    "arena": lambda row: row["ram"]["arena"],
    "stack": lambda row: row["ram"]["stack"],
}
WHAT = ("model", "board", "dtype", "toolchain", "optimize")


@dataclass(frozen=True)
class Change:
    """A figure of a row that changed; None if the row did or does not exist."""

    row: tuple[str, ...]
    figure: str
    before: int | None
    after: int | None

    @property
    def worse(self) -> bool:
        return self.before is not None and (self.after is None or self.after > self.before)

    def __str__(self) -> str:
        before, after = (f"{v:,}" if v is not None else "-" for v in (self.before, self.after))
        change = f"{100 * (self.after / self.before - 1):+.2f} %" if self.before and self.after is not None else ""
        verdict = "worse" if self.worse else "better" if self.before is not None else "new"
        return f"| {' '.join(self.row)} | {self.figure} | {before} | {after} | {change} | {verdict} |"


def changes(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[Change]:
    old, new = ({_name(row): row for row in rows if "misfit" not in row} for rows in (before, after))
    for name in (*old, *(n for n in new if n not in old)):
        for figure, value in FIGURES.items():
            was, is_ = (value(rows[name]) if name in rows else None for rows in (old, new))
            if was != is_:
                yield Change(name, figure, was, is_)


def _name(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the name of a row; rows with bands, two cores or tinygrad's own C have names of their own."""
    more = [word for key, word in (("bands", "bands"), ("cores", "two cores")) if row.get(key)]
    more += [row["made_by"]] if "made_by" in row else []
    return (*(str(row.get(key, "")) for key in WHAT), *more)


def main() -> int:
    before, after = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    found = list(changes(before, after))
    print("| row | figure | before | after | change | |\n|---|---|--:|--:|--:|---|")
    print("\n".join(map(str, found)) or "| all | all | | | | equal |")
    worse = sum(change.worse for change in found)
    rows = len({_name(row) for row in before})
    print(f"\n{rows} rows of {len(FIGURES)} figures: {worse} worse, {len(found) - worse} better or new, the rest equal")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

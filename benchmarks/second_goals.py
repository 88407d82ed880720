"""List harder goals, set when those of peers.py were met, and why some of them are missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from peers import M0PLUS, M4F, M55, TOOLCHAIN
from tables import Row, line

FIGURES: dict[str, Callable[[Row], float]] = {
    "instructions": lambda row: row["instructions"],
    "cycles": lambda row: row["cycles"],
    "bytes of RAM": lambda row: row["ram"]["arena"] + row["ram"]["model_static"],
    "ms": lambda row: row["time_ms"],
}
KEY = ("model", "dtype", "board", "toolchain")
RECORDS = {"kws": 5_180_000, "vww": 10_670_000, "ic": 19_800_000, "ad": 490_000}  # closed engines on a Cortex-M4


@dataclass(frozen=True)
class Goal:
    """The largest acceptable figure of a model. `why` explains why it is missed, if it is."""

    model: str
    dtype: str
    board: str
    figure: str
    most: float
    why: str = ""


LOADS = (
    "The inner loop of dense layers takes 25 cycles for 24 products, because loads of two words take 3 cycles and "
    "loads of three words 4. It takes 6.97 M of the cycles. Other blocks of windows and channels need more registers "
    "than the core has."
)
GOALS = (
    Goal("kws", "int8", M4F, "instructions", 2_750_000),
    Goal("vww", "int8", M4F, "instructions", 7_600_000),
    Goal("ic", "int8", M4F, "instructions", 11_000_000),
    Goal("ad", "int8", M4F, "instructions", 310_000),
    Goal("kws", "int8", M4F, "cycles", 3_900_000),
    Goal("vww", "int8", M4F, "cycles", 10_400_000, LOADS),
    Goal("ic", "int8", M4F, "cycles", 15_600_000),
    Goal("ad", "int8", M4F, "cycles", 420_000),
    Goal("kws", "int8", M55, "instructions", 650_000),
    Goal("vww", "int8", M55, "instructions", 1_900_000),
    Goal("ic", "int8", M55, "instructions", 1_800_000),
    Goal("ad", "int8", M55, "instructions", 52_000),
    Goal("kws", "int8", M0PLUS, "bytes of RAM", 9_500),
    Goal("kws", "int8", "virt-rv32", "bytes of RAM", 9_500),
    Goal("kws", "float32", M4F, "bytes of RAM", 34_000),
    Goal("ad", "int8", "pico", "ms", 20),
    Goal("ad", "int8", "pico2w", "ms", 3.5),
)


def section(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the section."""
    goals = list(goals_of(rows))
    if not goals:
        return []
    missed = [(goal, have) for goal, have in goals if have > goal.most]
    records = ", ".join(f"{model} {cycles:,}" for model, cycles in RECORDS.items())
    return [
        "## Second goals",
        "",
        "These goals were set when the first were met. Cycles of Cortex-M4F are our estimate. Records of closed",
        f"engines, measured in silicon, are {records}.",
        "",
        "| model | board | figure | have | goal | ratio |",
        "|---|---|---|--:|--:|--:|",
        *(_row(goal, have) for goal, have in goals),
        "",
        *(f"- {g.model} {g.dtype} on {g.board}: {_gap(g, have)} too many. {g.why}" for g, have in missed),
        *([""] if missed else []),
    ]


def goals_of(rows: Sequence[Row]) -> Iterator[tuple[Goal, float]]:
    """Yield the goals of the measured rows, with our figures."""
    for goal in GOALS:
        for row in rows:
            if tuple(row[key] for key in KEY) == (goal.model, goal.dtype, goal.board, TOOLCHAIN):
                yield goal, FIGURES[goal.figure](row)


def _row(goal: Goal, have: float) -> str:
    part = f"{have / goal.most:.3f}"
    cells = (f"{goal.model} {goal.dtype}", goal.board, goal.figure, _number(have), _number(goal.most))
    return line([*cells, part if have <= goal.most else f"**{part}**"])


def _gap(goal: Goal, have: float) -> str:
    return f"{_number(have - goal.most)} {goal.figure} ({100 * (have / goal.most - 1):.1f} %)"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"

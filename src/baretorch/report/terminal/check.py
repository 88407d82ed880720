"""Show the result of `baretorch check` as Markdown, which people read in a terminal and in a pull request."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from baretorch.explore.check import Check, CheckedFigure

UNITS = {"flash": "bytes", "ram": "bytes", "time_ms": "ms"}
TITLES = {"time_ms": "time", "max_error": "max error", "ram": "RAM"}


def check_text(check: Check) -> str:
    """Return a table with a row per figure, the errors of models, and what to do next."""
    return "\n".join(_lines(check))


def _lines(check: Check) -> Iterator[str]:
    yield "| model | figure | value | budget | baseline | change | result |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for model in check.models:
        for i, figure in enumerate(model.figures):
            yield _row(_cell(model.title) if i == 0 else "", figure)
        if model.error is not None:
            yield f"| {_cell(model.title)} | – | – | – | – | – | **error** |"
    for model in check.models:
        if model.error is not None:
            yield from ("", f"{model.title}:", "", "```text", *model.error.render().splitlines(), "```")
    yield ""
    yield from _summary(check)


def _summary(check: Check) -> Iterator[str]:
    failed = [model for model in check.models if not model.passes]
    count = len(check.models)
    if not failed:
        yield f"All {count} models pass." if count > 1 else "The model passes."
    else:
        yield f"{len(failed)} of {count} models fail." if count > 1 else "The model fails."
    if any(figure.verdict == "worse" for model in failed for figure in model.figures):
        yield "If a figure may get worse, run `baretorch check --update` and commit the baseline."
    if check.stored is not None:
        yield f"The figures are the new baseline in {check.stored}: commit it."
    elif not check.has_baseline:
        yield "There is no baseline to compare with: run `baretorch check --update` and commit it."


def _row(title: str, figure: CheckedFigure) -> str:
    unit = f" {UNITS[figure.name]}" if figure.name in UNITS else ""
    budget = " and ".join(
        f"{sign} {_number(limit)}" for sign, limit in (("≤", figure.most), ("≥", figure.least)) if limit is not None
    )
    before = "–" if figure.before is None else _number(figure.before)
    verdict = figure.verdict if figure.verdict == "ok" else f"**{figure.verdict}**"
    name = _cell(TITLES.get(figure.name, figure.name))
    cells = (title, name, _number(figure.value) + unit, budget or "–", before, _change(figure), verdict)
    return f"| {' | '.join(cells)} |"


def _change(figure: CheckedFigure) -> str:
    if figure.change is None:
        return "–"
    return "new" if math.isinf(figure.change) else "0 %" if figure.change == 0 else f"{figure.change:+.2f} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _cell(text: str) -> str:
    """Return text for a cell of a table: names may contain the characters that Markdown uses."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")

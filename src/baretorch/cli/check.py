"""baretorch check: budgets and regressions of several models, for continuous integration."""

from __future__ import annotations

from pathlib import Path

import click

from baretorch.cli.verb import Answer, show_progress, verb, whole_lines
from baretorch.errors import USER_ERROR


@verb("check")
@click.argument("file", type=click.Path(), metavar="[FILE]", default="baretorch.toml")
@click.option("--update", is_flag=True, help="Store the figures as the new baseline, instead of comparing with it.")
def check(as_json: bool, file: str, update: bool) -> Answer:
    """Check models against budgets and a baseline.

    FILE lists models, boards and budgets; the default is baretorch.toml. Each model is compiled, built, emulated and
    compared with the original. The result is a Markdown table. The exit code is 1 if a figure exceeds its budget, or
    got worse than in baretorch.baseline.json by more than the tolerance.
    """
    from baretorch.explore.check import check_models
    from baretorch.report.terminal.check import check_text

    with show_progress(as_json) as progress:
        found = check_models(Path(file), progress.show, update)
    return Answer(found.to_json(), whole_lines(check_text(found)), 0 if found.passes else USER_ERROR)

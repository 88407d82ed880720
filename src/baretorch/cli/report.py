"""baretorch report: everything measured about a model on a board, as an HTML page and in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, model_argument, takes
from baretorch.cli.verb import IMAGE_FOLDER, Answer, board_option, show_progress, verb
from baretorch.errors import USER_ERROR

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("report")
@model_argument
@board_option
@takes("emulator", *BUILD, *COMPILE, "cores", "npu", "units")
@click.option("--evaluate", "task", is_flag=True, help="Run the file's evaluate() and include its metrics.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help=f"Write the page to this file. Default: {IMAGE_FOLDER}/report.html.",
)
def report(as_json: bool, model: str, board: Board, options: Options, task: bool, out: str | None) -> Answer:
    """Write an HTML page about memory, time and accuracy."""
    from pathlib import Path

    from baretorch.cli.stages import compile_model, image_folder, measure_compiled, need_machine, opener
    from baretorch.explore.advice import advise
    from baretorch.explore.evaluate import evaluate_task
    from baretorch.frontends.model_file import load_evaluate
    from baretorch.pipeline import arguments_of
    from baretorch.report.findings import Report
    from baretorch.report.page.write import write_page
    from baretorch.report.terminal.report import report_screen

    need_machine(board, options)
    evaluate = load_evaluate(model.partition("::")[0], None, arguments_of(options)) if task else None
    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress)
        page = Path(out) if out else image_folder(compiled, None) / "report.html"
        measured = measure_compiled(compiled, None, progress)
        facts, profile = measured.facts, measured.profile
        found = evaluate_task(compiled, evaluate, opener(progress), progress.show) if evaluate else None
        progress("report")
        made = Report(facts, profile, advise(facts, profile), found)
        write_page(made, page)
    return Answer(
        made.to_json() | {"report": str(page)}, report_screen(made, page), USER_ERROR if facts.mismatch else 0
    )

"""baretorch fit: the boards that hold a model, and the options that make it fit the others."""

from __future__ import annotations

from dataclasses import replace

import click

from baretorch.cli.flags import INT8, model_argument, takes
from baretorch.cli.verb import Answer, complete_boards, show_progress, verb
from baretorch.options import Options


@verb("fit")
@model_argument
@click.option(
    "--board",
    "boards",
    multiple=True,
    metavar="BOARD",
    shell_complete=complete_boards,
    help="Check this board only. Repeatable.",
)
@click.option("--time", "timed", is_flag=True, help="Run the model on each board that holds it, and report the time.")
@takes("toolchain", "optimize", *INT8)
def fit(as_json: bool, model: str, boards: tuple[str, ...], timed: bool, options: Options) -> Answer:
    """Show which boards hold a model, and how to fit others."""
    from baretorch.cli.stages import lower_model, read_source
    from baretorch.explore.fit import Finding, Fitter
    from baretorch.pipeline import LoweredModel
    from baretorch.report.terminal.fit import fit_screen
    from baretorch.targets.boards import board_names, load_board

    targets = [load_board(name) for name in boards or board_names()]
    targets = [board for board in targets if not board.hosted]  # this computer has room for everything
    with show_progress(as_json) as progress:
        findings: list[Finding] = []

        def lower(int8: bool) -> LoweredModel:
            given = replace(options, int8=int8, io=None)
            return lower_model(read_source(model, given, progress), given, progress)

        fitter = Fitter(lower, options, lambda what: progress.show(what, len(findings), len(targets)))
        name = fitter.model(options.int8).source.name
        dtype = "int8" if fitter.is_int8() else "float32"
        for board in targets:
            found = fitter.find(board)
            findings.append(fitter.add_time(found) if timed else found)
    rows = [found.to_json(options) for found in findings]
    data = {"model": name, "dtype": dtype, "boards": rows, "notes": fitter.notes, "warnings": fitter.warnings}
    return Answer(data, fit_screen(name, dtype, options, findings, fitter.notes, fitter.warnings))

"""baretorch fit: which boards hold a model, and what makes it fit the others."""

from __future__ import annotations

from dataclasses import replace

import click

from baretorch.cli.verb import (
    Answer,
    ModelFile,
    Quantization,
    complete_boards,
    int8_options,
    model_argument,
    optimize_option,
    stages,
    toolchain_option,
    verb,
)


@verb("fit")
@model_argument
@click.option(
    "--board",
    "boards",
    multiple=True,
    metavar="BOARD",
    shell_complete=complete_boards,
    help="Look at this board only; repeatable.",
)
@toolchain_option
@optimize_option
@int8_options
def fit(
    as_json: bool,
    model: ModelFile,
    boards: tuple[str, ...],
    toolchain: str | None,
    optimize: str,
    quantization: Quantization,
) -> Answer:
    """Show which boards hold a model, and how to fit the others."""
    from baretorch.cli.work import read_model
    from baretorch.report.fit import Finding, Fitter, Options
    from baretorch.report.fit_table import fit_screen
    from baretorch.targets.boards import board_names, load_board

    targets = [load_board(name) for name in boards or board_names()]
    targets = [board for board in targets if board.chip.boot != "host"]  # this computer has room for everything
    given = Options(quantization.io, quantization.int8, optimize)
    with stages(as_json) as stage:
        findings: list[Finding] = []
        fitter = Fitter(
            lambda int8: read_model(model, stage, replace(quantization, int8=int8)),
            given,
            toolchain,
            lambda what: stage.show(what, len(findings), len(targets)),
        )
        name = fitter.source(given.int8).name
        dtype = "int8" if fitter.is_int8() else "float32"
        for board in targets:
            findings.append(fitter.find(board))
    data = {
        "model": name,
        "dtype": dtype,
        "boards": [found.to_json(given) for found in findings],
        "notes": fitter.notes,
    }
    return Answer(data, fit_screen(name, dtype, given, findings, fitter.notes))

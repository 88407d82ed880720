"""baretorch compile: the model as C files, for a build of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import COMPILE, CORES, model_argument, takes
from baretorch.cli.verb import Answer, board_option, show_progress, verb

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("compile")
@model_argument
@board_option
@click.option("--out", type=click.Path(), metavar="DIR", required=True, help="Write the C files to this folder.")
@takes(*COMPILE, *CORES, "npu", "units")
def compile_(as_json: bool, model: str, board: Board, out: str, options: Options) -> Answer:
    """Write the model as C files."""
    from pathlib import Path

    from baretorch.cli.stages import compile_model
    from baretorch.files.write import stage_files
    from baretorch.measure.facts import compiled_json, warnings_of
    from baretorch.pipeline import write_c
    from baretorch.report.terminal.tables import c_screen

    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options.for_own_build(), progress)
        folder = Path(out)
        with stage_files(folder) as work:
            written = write_c(compiled, work)
    files = [folder / path.relative_to(work) for path in written]
    data = compiled_json(compiled) | {
        "options": options.to_json(),
        "run": compiled.c.call,
        "arena": compiled.plan.arena,
        "weights": compiled.plan.weight_bytes(),
        "files": [str(path) for path in files],
        "warnings": list(warnings_of(compiled)),
    }
    return Answer(data, c_screen(compiled, files))

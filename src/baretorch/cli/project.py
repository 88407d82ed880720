"""baretorch project: the model in a project for a vendor's or RTOS's SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import COMPILE, model_argument, takes
from baretorch.cli.verb import SELECT_BOARD, Answer, board_name_option, show_progress, verb
from baretorch.exports import BY_NAME, need_board

if TYPE_CHECKING:
    from baretorch.options import Options


@verb("project")
@model_argument
@board_name_option(f"{SELECT_BOARD} Default: portable C for any chip.")
@click.option("--sdk", type=click.Choice(tuple(BY_NAME)), required=True, help="Select the SDK.")
@click.option("--out", type=click.Path(), metavar="DIR", required=True, help="Write the project to this folder.")
@click.option("--force", is_flag=True, help="Also replace files that you changed; keep copies of them as NAME.orig.")
@takes(*COMPILE)
def project(as_json: bool, model: str, board: str | None, sdk: str, out: str, force: bool, options: Options) -> Answer:
    """Write a project for an SDK, with the model as a library.

    The project also has a program that runs the model and checks the results.
    """
    from pathlib import Path

    from baretorch.cli.stages import compile_model
    from baretorch.exports.files import need_folder, write
    from baretorch.exports.project import figures_of
    from baretorch.exports.project import project_files as files_of
    from baretorch.files.write import scratch
    from baretorch.measure.facts import warnings_of
    from baretorch.pipeline import build_image
    from baretorch.report.terminal.tables import project_screen
    from baretorch.targets.boards import load_board

    target = None if board is None else load_board(board)
    need_board(BY_NAME[sdk], target)
    target = target or load_board("host")  # whose C is portable
    need_folder(Path(out))  # before the slow stages
    with show_progress(as_json) as progress:
        compiled = compile_model(model, target, options.for_own_build(), progress)
        progress("build, for the figures")
        with scratch() as folder:
            figures = figures_of(compiled, build_image(compiled, folder, progress.build))
        files = files_of(compiled, BY_NAME[sdk], figures)
        kept = write(Path(out), files, force)
    data = {
        "model": compiled.graph.name,
        "board": target.name,
        "sdk": sdk,
        "options": options.to_json(),
        "figures": figures,
        "files": [str(Path(out) / name) for name in files],
        "kept": [str(path) for path in kept],
        "warnings": list(warnings_of(compiled)),
    }
    return Answer(data, project_screen(compiled, sdk, Path(out), len(files), kept))

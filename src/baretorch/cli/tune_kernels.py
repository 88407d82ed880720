"""baretorch tune-kernels: the best kernel for each layer, measured on the emulator, and a file that says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import INT8, MEMORY, model_argument, takes
from baretorch.cli.verb import Answer, board_option, stages, verb
from baretorch.errors import CompileError

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("tune-kernels")
@model_argument
@board_option
@click.option(
    "--by",
    type=click.Choice(["cycles", "instructions"]),
    default="cycles",
    show_default=True,
    help="What is to become less; cycles are estimates but on clusters and AVRs.",
)
@takes("emulator", "toolchain", "optimize", *INT8, *MEMORY, "cores", "units")
@click.option("--out", type=click.Path(), metavar="FILE", help="Where it goes. Default: MODEL.kernels.json.")
def tune_kernels(as_json: bool, model: str, board: Board, by: str, options: Options, out: str | None) -> Answer:
    """Find the fastest kernel for each layer.

    Every kernel that fits a layer is tried on the emulator, on a cluster also every way to share a layer between cores
    and other counts of its tiles. What is best, and needs no larger arena, is written to a JSON file, which other verbs
    take with --kernels; a file of choices that is there already keeps those for other layers. What was measured is kept
    in the user's cache.
    """
    from baretorch.cli.work import read_model
    from baretorch.emulators import choose_emulator
    from baretorch.explore.kernel_search import search
    from baretorch.outputs import put
    from baretorch.ownership import check_file
    from baretorch.plan.choices import read_choices, to_json
    from baretorch.report.kernels import kernels_screen

    choose_emulator(board, options.emulator)
    path = Path(out) if out else Path(model.partition("::")[0]).with_suffix(".kernels.json")
    check_file(path)
    elsewhere = "another place with --out"
    if not path.parent.is_dir():  # told before the search, which takes its time
        raise CompileError(f"cannot write {path}", have=f"no folder {path.parent}", try_=elsewhere)
    try:
        others = read_choices(path) if path.exists() else ()
    except CompileError as error:
        raise CompileError(error.what, have=error.have, need=error.need, try_=f"{elsewhere}, or remove it") from error
    with stages(as_json) as stage:
        source = read_model(model, options, stage)
        found = search(source, board, options, by, stage.show)
    new = {choice.key: choice for choice in (*others, *found.choices)}
    put(path, to_json(new.values()))
    return Answer(
        found.to_json() | {"model": source.name, "board": board.name, "by": by, "file": str(path)},
        kernels_screen(source.name, board, found, by, path),
    )

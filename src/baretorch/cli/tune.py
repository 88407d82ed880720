"""baretorch tune: search the best model within budgets, and write a file that reproduces it."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.flags import flags, gather_options, model_argument
from baretorch.cli.quantity import SIZE, TIME
from baretorch.cli.verb import Answer, board_option, out_option, show_progress, verb
from baretorch.options import Options

if TYPE_CHECKING:
    from baretorch.targets.types import Board


@verb("tune")
@model_argument
@board_option
@click.option("--flash", type=SIZE, metavar="SIZE", help="Limit the image to this size in bytes: 60k, 1.5M; k is 1024.")
@click.option(
    "--total-ram",
    "ram_budget",
    type=SIZE,
    metavar="SIZE",
    help="Limit the RAM of the image, that is arena, static data and stack, to this size in bytes: 20k.",
)
@click.option("--time", "milliseconds", type=TIME, metavar="TIME", help="Limit the time of an inference: 30ms, 1.5s.")
@click.option(
    "--accuracy-drop",
    type=click.FloatRange(min=0.0),
    default=0.5,
    show_default=True,
    metavar="POINTS",
    help="Accept this loss of accuracy: percentage points for metrics up to 1, otherwise the metric's own unit.",
)
@click.option(
    "--metric", metavar="NAME", help="Select one of evaluate()'s numbers; larger is better. Default: the first."
)
@click.option(
    "--trials", type=click.IntRange(min=1), default=40, show_default=True, help="Measure this number of candidates."
)
@click.option("--samples", type=click.IntRange(min=1), help="Limit evaluate() to this number of inputs. Default: all.")
@click.option(
    "--target-samples",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Run this number of inputs on the target.",
)
@click.option(
    "--storage",
    metavar="URL",
    help="Store the search in this SQLite database, sqlite:///FILE, and resume it from there.",
)
@click.option("--join", is_flag=True, help="Join a search that another process started.")
@flags("emulator", "toolchain", "optimize", "calibration", "observer", "io")
@click.option("--int8", is_flag=True, default=True, hidden=True)
@out_option("build/MODEL-BOARD-tuned")
@gather_options
def tune(as_json: bool, model: str, board: Board, options: Options, **request: Any) -> Answer:
    """Search for precisions and channels that meet your budgets.

    Candidates are built and measured; the model file's evaluate(run) returns their accuracy. The best is written as a
    TOML for --config and confirmed on the emulated board. If the file has train(model), it retrains the model after
    channels were removed.
    """
    from baretorch.cli.stages import opener
    from baretorch.machines import choose_emulator
    from baretorch.report.page.tuning import tuning_page
    from baretorch.report.terminal.tuning import tuning_screen
    from baretorch.tune.search import JoinedSearch, SearchRequest, search

    if request["join"] and not request["storage"]:
        raise click.UsageError("--join needs --storage")
    if not isfinite(request["accuracy_drop"]):
        raise click.UsageError(f"--accuracy-drop {request['accuracy_drop']} is not a finite number of points")
    choose_emulator(board, options.emulator)
    with show_progress(as_json) as progress:
        search_request = SearchRequest(model, board, options, **request)
        found = search(
            search_request, opener(progress), tuning_page, progress.show, lambda text: click.echo(text, err=True)
        )
    if isinstance(found, JoinedSearch):
        return Answer(asdict(found), f"{found.trials} trials are done: the result is where the search was begun")
    files = list(found.files)
    return Answer(found.tuning.to_json() | {"files": files}, tuning_screen(found.tuning, files, found.command))

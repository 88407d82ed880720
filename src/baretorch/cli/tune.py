"""baretorch tune: search the best model within budgets, and write a file that reproduces it."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.flags import flags, gathered, model_argument
from baretorch.cli.verb import Answer, board_option, out_option, stages, verb
from baretorch.options import Options

if TYPE_CHECKING:
    from baretorch.targets.types import Board


UNITS = {"": 1, "b": 1, **dict.fromkeys(("k", "kb", "kib"), 1 << 10), **dict.fromkeys(("m", "mb", "mib"), 1 << 20)}
TIMES = {"ms": 1.0, "us": 1e-3, "s": 1e3, "": 1.0}  # milliseconds


class Size(click.ParamType[int]):
    """Bytes: 61440, 60k or 1.5M, where k is 1024."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        number = text.rstrip("kKMiBb")
        unit = UNITS.get(text[len(number) :].lower(), 0)
        try:
            found = float(number) * unit
        except ValueError:
            found = 0.0
        if not 1 <= found < 1 << 40:
            self.fail(f"{text} is not a valid size; write 61440, 60k or 1.5M", param, ctx)
        return int(found)


class Milliseconds(click.ParamType[float]):
    """30ms, 1.5s or a plain number, which is milliseconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        unit = next(unit for unit in TIMES if text.endswith(unit))
        try:
            found = float(text.removesuffix(unit)) * TIMES[unit]
        except ValueError:
            found = 0.0
        if not 0 < found < 1e9:
            self.fail(f"{text} is not a valid time; write 30ms or 1.5s", param, ctx)
        return found


@verb("tune")
@model_argument
@board_option
@click.option(
    "--flash", type=Size(), metavar="SIZE", help="Limit the image to this size in bytes: 60k, 1.5M; k is 1024."
)
@click.option("--ram", "ram_budget", type=Size(), metavar="SIZE", help="Limit the RAM to this size in bytes: 20k.")
@click.option(
    "--time", "milliseconds", type=Milliseconds(), metavar="TIME", help="Limit the time of an inference: 30ms, 1.5s."
)
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
@gathered
def tune(as_json: bool, model: str, board: Board, options: Options, **request: Any) -> Answer:
    """Search precisions and channels that meet budgets.

    Candidates are built and measured; the model file's evaluate(run) returns their accuracy. The best is written as a
    TOML for --config and confirmed on the emulated board. If the file has train(model), it retrains the model after
    channels were removed.
    """
    from baretorch.cli.stages import opener
    from baretorch.machines import choose_emulator
    from baretorch.report.page.tuning import tuning_page
    from baretorch.report.terminal.tuning import tuning_screen
    from baretorch.tune.search import Joined, SearchRequest, search

    if request["join"] and not request["storage"]:
        raise click.UsageError("--join needs --storage")
    if not isfinite(request["accuracy_drop"]):
        raise click.UsageError(f"--accuracy-drop {request['accuracy_drop']} is not a finite number of points")
    choose_emulator(board, options.emulator)
    with stages(as_json) as stage:
        asked = SearchRequest(model, board, options, **request)
        found = search(asked, opener(stage), tuning_page, stage.show, lambda text: click.echo(text, err=True))
    if isinstance(found, Joined):
        return Answer(asdict(found), f"{found.trials} trials are done: the result is where the search was begun")
    files = list(found.files)
    return Answer(found.tuning.to_json() | {"files": files}, tuning_screen(found.tuning, files, found.command))

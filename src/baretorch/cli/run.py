"""baretorch run: the whole pipeline, from the model to a verified run on the emulated chip."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, CORES, model_argument, takes
from baretorch.cli.verb import Answer, board_option, out_option, stages, verb
from baretorch.errors import USER_ERROR

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("run")
@model_argument
@board_option
@takes("emulator", *BUILD, *COMPILE, *CORES, "npu", "units", "watchdog")
@out_option("build/MODEL-BOARD")
@click.option("--trace", type=click.Path(), metavar="DIR", help="Write the graph after each pass to this folder.")
def run(
    as_json: bool,
    model: str,
    board: Board,
    options: Options,
    out: str | None,
    trace: str | None,
) -> Answer:
    """Compile, build, emulate and compare with the original."""
    from baretorch.cli.stages import built_image, compiled_model
    from baretorch.explore.one_core import on_one_core
    from baretorch.frontends.consecutive import consecutive_calls
    from baretorch.machines import choose_emulator
    from baretorch.measure.facts import compare
    from baretorch.pipeline import run_image
    from baretorch.report.terminal.tables import run_screen
    from baretorch.stopwatch import timed, watch

    choose_emulator(board, options.emulator)  # first: an image that cannot run need not be built
    with watch() as seconds, stages(as_json) as stage:
        compiled = compiled_model(model, board, options, stage, trace)
        with timed("build"):
            image = built_image(compiled, out, stage)
        stage("emulate")
        with timed("emulate"):
            calls = consecutive_calls(compiled.source, compiled.graph)
            answer = run_image(compiled, image, calls)
        with timed("compare"):
            facts = compare(compiled, image, answer, calls)
            if answer.cores is not None:
                facts = replace(facts, one_core=on_one_core(compiled))
    return Answer({**facts.to_json(), "tool_seconds": seconds}, run_screen(facts), USER_ERROR if facts.mismatch else 0)

"""baretorch run: the whole pipeline, from the model to a verified run on the emulated chip."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, CORES, model_argument, takes
from baretorch.cli.verb import IMAGE_FOLDER, Answer, board_option, out_option, show_progress, verb
from baretorch.errors import USER_ERROR

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("run")
@model_argument
@board_option
@takes("emulator", *BUILD, *COMPILE, *CORES, "npu", "units", "watchdog")
@out_option(IMAGE_FOLDER)
@click.option("--trace", type=click.Path(), metavar="DIR", help="Write the graph after each pass to this folder.")
@click.option("--compare-cores", is_flag=True, help="Compile and run for one core too, and show the speed-up.")
def run(
    as_json: bool, model: str, board: Board, options: Options, out: str | None, trace: str | None, compare_cores: bool
) -> Answer:
    """Compile, build, emulate and compare with the original."""
    from baretorch.cli.stages import compile_model, measure_compiled, need_machine
    from baretorch.measure.run import on_one_core
    from baretorch.report.terminal.tables import run_screen
    from baretorch.stopwatch import watch

    if compare_cores and options.used_cores == 1 and not board.chip.is_team:
        raise click.UsageError("--compare-cores needs a model on several cores: --cores 2, or a cluster")

    need_machine(board, options)
    with watch() as seconds, show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress, trace)
        facts = measure_compiled(compiled, out, progress, other_inputs=True).facts
        if compare_cores:
            progress("one core")
            facts = replace(facts, one_core=on_one_core(compiled))
    return Answer({**facts.to_json(), "tool_seconds": seconds}, run_screen(facts), USER_ERROR if facts.mismatch else 0)

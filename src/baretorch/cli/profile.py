"""baretorch profile: the instructions and cycles of each layer and loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, model_argument, takes
from baretorch.cli.verb import IMAGE_FOLDER, Answer, board_option, out_option, show_progress, verb
from baretorch.errors import USER_ERROR

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("profile")
@model_argument
@board_option
@takes("emulator", *BUILD, *COMPILE, "cores", "npu", "units")
@out_option(IMAGE_FOLDER)
@click.option("--loops", is_flag=True, help="Show the instructions of each layer's hottest loop.")
def profile(as_json: bool, model: str, board: Board, options: Options, out: str | None, loops: bool) -> Answer:
    """Show the instructions and cycles of each layer and loop."""
    from rich.console import Group

    from baretorch.cli.stages import compile_model, measure_compiled, need_machine
    from baretorch.measure.facts import image_json
    from baretorch.measure.profile import hottest_code
    from baretorch.measure.run import on_one_core
    from baretorch.report.terminal.layout import warnings
    from baretorch.report.terminal.profile import profile_screen

    need_machine(board, options)
    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress)
        measured = measure_compiled(compiled, out, progress)
        found = measured.profile
        if compiled.options.shared_cores > 1:
            progress("one core")
            found = replace(found, one_core=on_one_core(compiled))
    image, emulator, facts = measured.image, measured.run.emulator, measured.facts
    data = image_json(compiled, image) | {"emulator": emulator} | found.to_json() | {"warnings": list(facts.warnings)}
    code = hottest_code(found, image) if loops and not as_json else []
    screen = Group(profile_screen(compiled, image, emulator, found, code), *warnings(facts.warnings))
    return Answer(data, screen, USER_ERROR if facts.mismatch else 0)

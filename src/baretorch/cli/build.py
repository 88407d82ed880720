"""baretorch build: compile the model and build the firmware image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baretorch.cli.flags import BUILD, COMPILE, CORES, model_argument, takes
from baretorch.cli.verb import IMAGE_FOLDER, Answer, board_option, out_option, show_progress, verb

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("build")
@model_argument
@board_option
@takes(*BUILD, *COMPILE, *CORES, "npu", "units", "watchdog", "app")
@out_option(IMAGE_FOLDER)
def build(as_json: bool, model: str, board: Board, options: Options, out: str | None) -> Answer:
    """Build the firmware image: UF2, ELF, HEX, BIN."""
    from baretorch.cli.stages import build_model, compile_model
    from baretorch.measure.facts import image_json, warnings_of
    from baretorch.report.terminal.tables import build_screen

    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress)
        image = build_model(compiled, out, progress)
    data = image_json(compiled, image) | {"warnings": list(warnings_of(compiled))}
    return Answer(data, build_screen(compiled, image))

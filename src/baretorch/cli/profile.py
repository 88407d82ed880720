"""baretorch profile: where the instructions of a run go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.verb import (
    Answer,
    ModelFile,
    Quantization,
    board_option,
    check_inputs_option,
    emulator_option,
    int8_options,
    memory_options,
    model_argument,
    optimize_option,
    out_option,
    stages,
    toolchain_option,
    verb,
)

if TYPE_CHECKING:
    from baretorch.plan.types import Memory


@verb("profile")
@model_argument
@board_option
@toolchain_option
@emulator_option
@optimize_option
@int8_options
@memory_options
@check_inputs_option
@out_option("build/MODEL-BOARD")
@click.option("--loops", is_flag=True, help="Show the instructions of each layer's hottest loop.")
def profile(
    as_json: bool,
    model: ModelFile,
    board: str,
    toolchain: str | None,
    emulator: str | None,
    optimize: str,
    quantization: Quantization,
    memory: Memory,
    check_inputs: bool,
    out: str | None,
    loops: bool,
) -> Answer:
    """Show the instructions and cycles of each layer and loop."""
    from baretorch.cli.work import built_image, compiled_model
    from baretorch.emulators import choose_emulator
    from baretorch.pipeline import run_image
    from baretorch.report.facts import image_json
    from baretorch.report.profile import make_profile
    from baretorch.report.profile_table import profile_screen
    from baretorch.targets.boards import load_board

    emulator = choose_emulator(load_board(board), emulator)
    with stages(as_json) as stage:
        compiled = compiled_model(model, board, stage, optimize, None, quantization, memory, check_inputs)
        image = built_image(compiled, out, toolchain, stage)
        stage("emulate")
        run = run_image(compiled, image, emulator)
    made = make_profile(compiled, image, run)
    data = image_json(compiled, image) | {"emulator": run.emulator} | made.to_json()
    return Answer(data, profile_screen(compiled, image, run.emulator, made, loops))

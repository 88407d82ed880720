"""baretorch run: all of it, from the model to a verified run on the emulated chip."""

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


@verb("run")
@model_argument
@board_option
@toolchain_option
@emulator_option
@optimize_option
@int8_options
@memory_options
@check_inputs_option
@out_option("build/MODEL-BOARD")
@click.option("--trace", type=click.Path(), metavar="DIR", help="Write the graph after each pass there.")
def run(
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
    trace: str | None,
) -> Answer:
    """Compile, build, emulate and compare with PyTorch."""
    from baretorch.cli.work import built_image, compiled_model
    from baretorch.emulators import choose_emulator
    from baretorch.pipeline import run_image
    from baretorch.report.facts import compare
    from baretorch.report.tables import run_screen
    from baretorch.stopwatch import timed, watch
    from baretorch.targets.boards import load_board

    emulator = choose_emulator(load_board(board), emulator)  # first of all: what cannot run need not be built
    with watch() as seconds, stages(as_json) as stage:
        compiled = compiled_model(model, board, stage, optimize, trace, quantization, memory, check_inputs)
        with timed("build"):
            image = built_image(compiled, out, toolchain, stage)
        stage("emulate")
        with timed("emulate"):
            answer = run_image(compiled, image, emulator)
        with timed("compare"):
            facts = compare(compiled, image, answer)
    return Answer({**facts.to_json(), "tool_seconds": seconds}, run_screen(facts))

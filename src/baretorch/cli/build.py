"""baretorch build: up to the firmware image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baretorch.cli.verb import (
    Answer,
    ModelFile,
    Quantization,
    board_option,
    check_inputs_option,
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


@verb("build")
@model_argument
@board_option
@toolchain_option
@optimize_option
@int8_options
@memory_options
@check_inputs_option
@out_option("build/MODEL-BOARD")
def build(
    as_json: bool,
    model: ModelFile,
    board: str,
    toolchain: str | None,
    optimize: str,
    quantization: Quantization,
    memory: Memory,
    check_inputs: bool,
    out: str | None,
) -> Answer:
    """Make the firmware image: UF2, ELF, HEX, BIN."""
    from baretorch.cli.work import built_image, compiled_model
    from baretorch.report.facts import image_json, warnings_of
    from baretorch.report.tables import build_screen

    with stages(as_json) as stage:
        compiled = compiled_model(model, board, stage, optimize, None, quantization, memory, check_inputs)
        image = built_image(compiled, out, toolchain, stage)
    data = image_json(compiled, image) | {"warnings": list(warnings_of(compiled))}
    return Answer(data, build_screen(compiled, image))

"""baretorch compile: the model as C files, for a build of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
    stages,
    verb,
)

if TYPE_CHECKING:
    from baretorch.plan.types import Memory


@verb("compile")
@model_argument
@board_option
@click.option("--out", type=click.Path(), metavar="DIR", required=True, help="Where the C files go.")
@optimize_option
@int8_options
@memory_options
@check_inputs_option
def compile_(
    as_json: bool,
    model: ModelFile,
    board: str,
    out: str,
    optimize: str,
    quantization: Quantization,
    memory: Memory,
    check_inputs: bool,
) -> Answer:
    """Write the model as C files."""
    from pathlib import Path

    from baretorch.cli.work import compiled_model, staged
    from baretorch.pipeline import write_c
    from baretorch.report.facts import warnings_of
    from baretorch.report.tables import c_screen

    with stages(as_json) as stage:
        compiled = compiled_model(model, board, stage, optimize, None, quantization, memory, check_inputs)
        folder = Path(out)
        with staged(folder) as work:
            written = write_c(compiled, work)
    files = [folder / path.relative_to(work) for path in written]
    data = {
        "model": compiled.graph.name,
        "board": compiled.board.name,
        "optimize": optimize,
        "run": compiled.c.run,
        "arena": compiled.plan.arena,
        "arena_lower_bound": compiled.plan.layout.lower_bound,
        "arena_proof": compiled.plan.proof,
        "bands": compiled.plan.patches.to_json() if compiled.plan.patches else None,
        "weights": compiled.plan.weight_bytes(),
        "macs": compiled.graph.macs(),
        "files": [str(path) for path in files],
        "warnings": list(warnings_of(compiled)),
    }
    return Answer(data, c_screen(compiled, files))

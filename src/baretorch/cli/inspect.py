"""baretorch inspect: a model's stages, its memory plan, and the memory that it needs on a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import INT8, model_argument, takes
from baretorch.cli.verb import Answer, board_name_option, show_progress, verb, whole_lines

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board

STAGES = ("source", "aten", "core", "graph", "plan")


@verb("inspect")
@model_argument
@board_name_option("Show how much of a board's memory the model needs, or which boards it fits.", "BOARD|all")
@click.option("--stage", type=click.Choice(STAGES), help="Show one stage as text.")
@takes("toolchain", *INT8)
def inspect(as_json: bool, model: str, board: str | None, stage: str | None, options: Options) -> Answer:
    """Show a model's stages and memory plan, and whether it fits."""
    from baretorch.cli.stages import lower_model, read_source
    from baretorch.errors import CompileError
    from baretorch.measure.model import ModelFacts, Worksheet, find_worksheet
    from baretorch.measure.sizes import compile_for_sizes
    from baretorch.plan import make_plan
    from baretorch.report.terminal.model import model_screen, stage_text, text_before
    from baretorch.targets.boards import board_names, load_board

    targets = [load_board(n) for n in board_names()] if board == "all" else [load_board(board)] if board else []
    with show_progress(as_json) as progress:
        source = read_source(model, options, progress)
        if stage in ("source", "aten", "core"):  # these can also be shown for models that cannot be compiled
            text = text_before(source, stage)
            return Answer({"model": source.name, "stage": stage, "text": text}, whole_lines(text))
        lowered = lower_model(source, options, progress)
        compiled = compile_for_sizes(lowered, targets[0], options)[0] if len(targets) == 1 else None
        graph = compiled.graph if compiled else lowered.graph
        plan = compiled.plan if compiled else make_plan(graph, load_board("host"))
        if stage is not None:
            text = stage_text(stage, graph, plan)
            return Answer({"model": source.name, "stage": stage, "text": text}, whole_lines(text))
        fits: list[tuple[Board, Worksheet | CompileError]] = []
        for target in targets:
            progress(f"build for {target.name}")
            try:
                made = compiled or compile_for_sizes(lowered, target, options)[0]
                fits.append((target, find_worksheet(made, target)))
            except CompileError as error:
                if board != "all":
                    raise
                fits.append((target, error))
    facts = ModelFacts(source, graph, plan, targets[0] if len(targets) == 1 else None, tuple(fits))
    return Answer(facts.to_json(), model_screen(facts))

"""What a model that runs on several cores would take on one."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import InternalError
from baretorch.files.write import scratch
from baretorch.measure.facts import OneCore
from baretorch.pipeline import Compiled, build_image, compile_graphs, run_image


def on_one_core(compiled: Compiled) -> OneCore:
    """Build it for one core and run it."""
    options = replace(compiled.options, cores=1, core=0)
    alone = compile_graphs(compiled.source, compiled.graphs, compiled.board, options)
    with scratch() as folder:
        image = build_image(alone, folder)
        run = run_image(alone, image)
    if run.instructions is None:
        raise InternalError("an emulator that counts several cores does not count one")
    cycles = run.emulator_cycles if compiled.board.chip.cluster else None
    return OneCore(run.instructions, image.ram.arena, image.flash.model_code, cycles)

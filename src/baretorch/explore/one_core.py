"""What a model that runs on two cores would take on one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from baretorch.errors import InternalError
from baretorch.pipeline import Compiled, build_image, compile_graphs, run_image
from baretorch.report.facts import OneCore


def on_one_core(compiled: Compiled) -> OneCore:
    """Build it for one core and run it."""
    options = replace(compiled.options, cores=1, core=0)
    alone = compile_graphs(compiled.source, compiled.graphs, compiled.board, options)
    with tempfile.TemporaryDirectory() as folder:
        image = build_image(alone, Path(folder))
        instructions = run_image(alone, image).instructions
    if instructions is None:
        raise InternalError("an emulator that counts two cores does not count one")
    return OneCore(instructions, image.ram.arena, image.flash.model_code)

"""Compiles and builds the model at a path, and shows progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from baretorch.cli.verb import Stage
from baretorch.firmware.types import Image
from baretorch.frontends import Int8, Source
from baretorch.machines import open_machine
from baretorch.machines.types import Machine
from baretorch.options import Options
from baretorch.pipeline import Compiled, build_image, compile_source, need_cores, read
from baretorch.targets.types import Board


def compiled_model(
    model: str, board: Board, options: Options, stage: Stage, trace: str | None = None, unless_done: bool = False
) -> Compiled:
    """Read the model and compile it for the board."""
    need_cores(board, options)  # first: reading is slow
    source = read_model(model, options, stage, unless_done)
    stage("compile to C")
    return compile_source(source, board, options, Path(trace) if trace else None)


def read_model(model: str, options: Options, stage: Stage, unless_done: bool = False) -> Source:
    """Read the model at a path, which may end in `::method`. With `unless_done`, an int8 model is not quantized
    again."""
    path, _, method = model.partition("::")
    how = (
        Int8(options.keep_float, options.observer, unless_done, options.config, options.requant)
        if options.int8
        else None
    )
    stage(f"{'quantize' if how else 'read'} {Path(path).name}")
    return read(path, method or None, how, options)


def built_image(
    compiled: Compiled, out: str | None, stage: Stage, debug: bool = False, more: Mapping[str, str] | None = None
) -> Image:
    """Build into `out`, or build/<model>-<board>; with `debug`, for a debugger. `more` are text files to add."""
    stage("build")
    return build_image(compiled, image_folder(compiled, out), stage.build, debug, more)


def image_folder(compiled: Compiled, out: str | None) -> Path:
    return Path(out) if out else Path("build") / f"{compiled.graph.name}-{compiled.board.name}"


def opener(stage: Stage) -> Callable[[Compiled, str | None], Machine]:
    """Return a function that opens a compiled model: on the board at a serial port, or built and booted on an
    emulator."""

    def opened(compiled: Compiled, port: str | None) -> Machine:
        if port:
            from baretorch.machines.hardware.serial import open_port

            return open_port(port, compiled.board)
        return open_machine(built_image(compiled, None, stage), compiled.c.run, compiled.options.emulator)

    return opened

"""Compile, build and measure the model at a path, and show progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from baretorch.cli.verb import ProgressLine
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.machines import choose_emulator, open_machine
from baretorch.machines.types import Machine
from baretorch.measure.run import Measurement, measure_model
from baretorch.options import Options
from baretorch.pipeline import Compiled, LoweredModel, build_image, compile_lowered, lower, read
from baretorch.targets.checks import need_cores
from baretorch.targets.types import Board


def need_machine(board: Board, options: Options, port: str | None = None) -> None:
    """Raise an error early if nothing can run an image: neither a board at the port, nor an emulator."""
    if port and options.emulator:
        raise click.UsageError("--port and --emulator exclude each other")
    if not port:
        choose_emulator(board, options.emulator)


def compile_model(
    model: str,
    board: Board,
    options: Options,
    progress: ProgressLine,
    trace: str | None = None,
    unless_quantized: bool = False,
) -> Compiled:
    """Read the model and compile it for the board. With `unless_quantized`, an int8 model stays as it is."""
    need_cores(board, options)  # first: reading is slow
    lowered = lower_model(read_source(model, options, progress), options, progress, trace, unless_quantized)
    progress("compile to C")
    return compile_lowered(lowered, board, options)


def read_source(model: str, options: Options, progress: ProgressLine) -> Source:
    """Read the model at a path, which may end in `::method`."""
    path, _, method = model.partition("::")
    progress(f"read {Path(path).name}")
    return read(path, method or None, options)


def lower_model(
    source: Source, options: Options, progress: ProgressLine, trace: str | None = None, unless_quantized: bool = False
) -> LoweredModel:
    """Run the passes, and quantize the model if the options say so."""
    progress("quantize" if options.int8 else "optimize")
    return lower(source, options, Path(trace) if trace else None, unless_quantized)


def build_model(
    compiled: Compiled,
    out: str | None,
    progress: ProgressLine,
    debug: bool = False,
    more: Mapping[str, str] | None = None,
) -> Image:
    """Build the image in `out` or the default folder; with `debug`, for a debugger. `more` are text files to add."""
    progress("build")
    return build_image(compiled, image_folder(compiled, out), progress.build, debug, more)


def image_folder(compiled: Compiled, out: str | None) -> Path:
    """Return `out`, or the default folder of the image. Files of other kinds than Python, and models in int8, have
    folders of their own: build/net-pico2w, build/net-pico2w-onnx-int8."""
    if out:
        return Path(out)
    kind = compiled.source.kind
    words = [compiled.graph.name, compiled.board.name, *([kind] if kind != "py" else [])]
    return Path("build") / "-".join([*words, *(["int8"] if compiled.options.int8 else [])])


def measure_compiled(
    compiled: Compiled, out: str | None, progress: ProgressLine, other_inputs: bool = False
) -> Measurement:
    """Build the image in `out` or the default folder, and run it on the emulated chip."""
    return measure_model(compiled, image_folder(compiled, out), progress.show, other_inputs)


def opener(progress: ProgressLine) -> Callable[[Compiled, str | None], Machine]:
    """Return a function that opens a compiled model on the board at a serial port, or builds and emulates it."""

    def open_model(compiled: Compiled, port: str | None) -> Machine:
        if port:
            from baretorch.machines.hardware.serial import open_port

            return open_port(port, compiled.board)
        return open_machine(build_model(compiled, None, progress), compiled.c.run, compiled.options.emulator)

    return open_model

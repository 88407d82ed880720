"""baretorch debug: gdb attached to the running model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, model_argument, takes
from baretorch.cli.verb import IMAGE_FOLDER, Answer, board_option, out_option, show_progress, verb

if TYPE_CHECKING:
    from baretorch.options import Options
    from baretorch.targets.types import Board


@verb("debug")
@model_argument
@board_option
@click.option("--script", type=click.Path(), metavar="FILE", help="Run the gdb commands in this file, then quit.")
@click.option("--probe", type=click.Choice(["pyocd", "openocd"]), help="Debug a real board through its debug probe.")
@click.option("--port", type=click.Path(), metavar="PORT", help="Feed a real board through this serial port.")
@takes("emulator", *BUILD, *COMPILE)
@out_option(IMAGE_FOLDER)
def debug(
    as_json: bool,
    model: str,
    board: Board,
    script: str | None,
    probe: str | None,
    port: str | None,
    options: Options,
    out: str | None,
) -> Answer:
    """Debug a running model with gdb; set breakpoints on layers."""
    import subprocess
    from pathlib import Path

    from baretorch.cli.stages import build_model, compile_model, image_folder
    from baretorch.debug.about import DebugInfo
    from baretorch.debug.servers import debug_emulator, start_emulator, start_probe
    from baretorch.debug.session import START, check_folder, feed, find_gdb, has_python, run_gdb, start_commands
    from baretorch.errors import CompileError
    from baretorch.files.read import describe_missing, need_regular
    from baretorch.files.write import put, scratch
    from baretorch.options import UseNpu

    if bool(probe) != bool(port):
        raise click.UsageError("--probe and --port go together: a probe to debug with, a port for the model's inputs")
    if as_json and script is None:
        raise click.UsageError("--json needs --script: gdb cannot have the terminal then")
    if script is not None:
        try:
            need_regular(Path(script))
        except (OSError, ValueError) as error:
            have = None if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None)
            raise CompileError(describe_missing(script), have=have, need="commands for gdb, one per line") from None
    emulator = "" if probe else debug_emulator(board, options.emulator)
    gdb = find_gdb(board)
    with show_progress(as_json) as progress:
        # The emulated NPU and gdb both need QEMU's single gdb connection.
        compiled = compile_model(model, board, replace(options, npu=UseNpu.OFF), progress)
        folder = image_folder(compiled, out)
        check_folder(folder)
        image = build_model(compiled, out, progress, debug=True, more=DebugInfo(compiled).files())
    with scratch() as socket:
        server_of = (
            start_probe(image, probe, port)
            if probe and port
            else start_emulator(image, compiled.c.run, emulator, socket)
        )
        with server_of as server, feed(compiled, server) as feeder:
            start = folder / START
            put(start, start_commands(compiled, folder, server, has_python(gdb)))
            captured = subprocess.PIPE if as_json else None
            code, text = run_gdb(gdb, image.elf, start, Path(script) if script else None, captured)
    if feeder.fault:
        raise feeder.fault[0]
    data = {
        "model": compiled.graph.name,
        "board": board.name,
        "options": options.to_json(),
        "server": probe or emulator,
        "gdb": gdb,
        "elf": str(image.elf),
        "runs": feeder.runs,
        "exit_code": code,
        "output": text,
    }
    return Answer(data, "", int(code != 0))

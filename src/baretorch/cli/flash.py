"""baretorch flash: write an image to a real board."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, CORES, model_or_image_argument, takes
from baretorch.cli.verb import Answer, board_option, show_progress, verb

if TYPE_CHECKING:
    from pathlib import Path

    from baretorch.firmware.types import Image
    from baretorch.options import Options
    from baretorch.targets.types import Board

IMAGES = (".uf2", ".hex", ".elf")


@verb("flash")
@model_or_image_argument
@board_option
@click.option(
    "--method",
    type=click.Choice(["uf2", "pyocd", "avrdude"]),
    help="Select how to flash. Default: the first method that works.",
)
@click.option("--drive", type=click.Path(), metavar="DIR", help="Copy the UF2 to the drive mounted here.")
@click.option(
    "--port",
    metavar="PORT",
    help="Select the board at this serial port. Default: the only board that identifies itself.",
)
@takes(*BUILD, *COMPILE, *CORES, "npu", "units", "watchdog", "app")
def flash(
    as_json: bool, model: str, board: Board, method: str | None, drive: str | None, port: str | None, options: Options
) -> Answer:
    """Write a model, or an image (.uf2, .hex, .elf), to a board."""
    from pathlib import Path

    from baretorch.escape import markup
    from baretorch.machines.hardware.flash import flash as put

    with show_progress(as_json) as progress:
        path = Path(model)
        if path.suffix in IMAGES:
            image = _image(path, board)
        else:
            from baretorch.cli.stages import build_model, compile_model

            compiled = compile_model(model, board, options, progress)
            image = build_model(compiled, None, progress)
        progress("flash")
        where = put(image, "uf2" if drive and method is None else method, [Path(drive)] if drive else None, port)
    file = str(path if path.suffix in IMAGES else image.uf2 or image.hex or image.elf)
    data = {"board": image.board.name, "file": file, "where": where}
    return Answer(data, f"{markup(file)} is on {markup(where)}")


def _image(path: Path, board: Board) -> Image:
    """Describe an image that was built before, of which only the file is known."""
    from baretorch.errors import CompileError
    from baretorch.files.read import describe_missing
    from baretorch.firmware.types import FlashUse, Image, RamUse

    if not path.is_file():
        raise CompileError(describe_missing(path), try_="`baretorch build` makes images")
    return Image(
        name=path.stem,
        board=board,
        toolchain="",
        elf=path,
        bin=None,
        hex=path if path.suffix == ".hex" else None,
        uf2=path if path.suffix == ".uf2" else None,
        map=path,
        flash=FlashUse(0, 0, 0, 0),
        ram=RamUse(0, 0, 0, 0, 0, 0, 0),
    )

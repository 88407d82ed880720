"""From a model's path to its image, with progress; files move to their place when all of them are there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from baretorch.cli.verb import Stage
from baretorch.emulators import open_machine
from baretorch.emulators.types import Machine
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.frontends import Int8, Source
from baretorch.options import Options
from baretorch.outputs import check_files
from baretorch.pipeline import Compiled, build_image, compile_source, need_cores, read
from baretorch.targets.types import Board


def compiled_model(
    model: str, board: Board, options: Options, stage: Stage, trace: str | None = None, unless_done: bool = False
) -> Compiled:
    """Read the model and compile it for the board."""
    need_cores(board, options)  # first of all: reading takes long
    source = read_model(model, options, stage, unless_done)
    stage("compile to C")
    return compile_source(source, board, options, Path(trace) if trace else None)


def read_model(model: str, options: Options, stage: Stage, unless_done: bool = False) -> Source:
    """The model at a path, which may end in `::method`. With `unless_done` one that is int8 already stays so."""
    path, _, method = model.partition("::")
    how = (
        Int8(options.keep_float, options.observer, unless_done, options.config, options.requant)
        if options.int8
        else None
    )
    stage(f"{'quantize' if how else 'read'} {Path(path).name}")
    return read(path, method or None, how, options)


def built_image(compiled: Compiled, out: str | None, stage: Stage, debug: bool = False) -> Image:
    """Build into `out`, or build/<model>-<board>; with `debug` for a debugger."""
    folder = Path(out) if out else Path("build") / f"{compiled.graph.name}-{compiled.board.name}"
    stage("build")
    with staged(folder) as work:
        image = build_image(compiled, work, stage.build, debug)
    return moved(image, work, folder)


def opener(stage: Stage) -> Callable[[Compiled, str | None], Machine]:
    """Opens what was compiled: on the board at a serial port, or built and booted on an emulator."""

    def opened(compiled: Compiled, port: str | None) -> Machine:
        if port:
            from baretorch.devices.serial import open_port

            return open_port(port, compiled.board)
        return open_machine(built_image(compiled, None, stage), compiled.c.run, compiled.options.emulator)

    return opened


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder to write into. Its files move to `folder` when the block ends well, and vanish when it does not."""
    above = [p for p in folder.parents if not p.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file")
        temporary = tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-")
    except OSError as error:
        raise CompileError(f"cannot write to {folder}", have=str(error), try_="another folder with --out") from error
    with _removed_if_empty(above), temporary as name:
        work = Path(name)
        yield work
        moves = [(p, folder / p.relative_to(work)) for p in sorted(work.rglob("*")) if p.is_file()]
        try:
            check_files(folder, [target for _, target in moves])
            for _, target in moves:
                _check_place(target)
            for path, target in moves:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
        except OSError as error:
            raise CompileError(
                f"cannot write to {folder}", have=str(error), try_="another folder with --out"
            ) from error


@contextmanager
def _removed_if_empty(folders: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    finally:
        for folder in folders:
            with suppress(OSError):  # it holds something
                folder.rmdir()


def _check_place(target: Path) -> None:
    """OSError if no file can be moved there."""
    home = next(p for p in target.parents if p.exists())
    if not home.is_dir():
        raise NotADirectoryError(f"{home} is a file")
    if not os.access(home, os.W_OK | os.X_OK):
        raise PermissionError(f"{home} is read-only")


def moved(image: Image, work: Path, folder: Path) -> Image:
    """The image with its files in `folder` instead of `work`."""

    def there(path: Path) -> Path:
        return folder / path.relative_to(work)

    return replace(
        image,
        elf=there(image.elf),
        map=there(image.map),
        bin=there(image.bin) if image.bin else None,
        hex=there(image.hex) if image.hex else None,
        uf2=there(image.uf2) if image.uf2 else None,
    )

"""An application of the user's own: C files that are linked into the image, and run instead of the server of frames."""

from __future__ import annotations

from pathlib import Path

from baretorch.errors import CompileError
from baretorch.targets.types import Board

MAIN = "bt_main"
GUIDE = "docs/how-to/your-own-application.md"
_LINES = 12  # of what a compiler says


def app_sources(folder: Path, board: Board) -> tuple[Path, ...]:
    """Its C files, in a fixed order; CompileError if there are none, or the board cannot have it."""
    if board.hosted:
        raise CompileError(
            f"--app: {board.name} is a program of this computer, not an image", need="a board with a chip of its own"
        )
    if not folder.is_dir():
        raise CompileError(f"--app: there is no folder {folder}", need=f"a folder of C files, one of which has {MAIN}")
    sources = tuple(sorted(p for p in folder.rglob("*.c") if p.is_file()))
    if not sources:
        raise CompileError(f"--app: {folder} has no C files", need=f"one of them with `void {MAIN}(void)`", try_=GUIDE)
    return sources


def wrong_app(what: str, said: str) -> CompileError:
    """The error for C that a compiler or linker does not take, with its first lines."""
    return CompileError(f"--app: {what}", have=said.strip().splitlines()[:_LINES], try_=GUIDE)


def need_server(app: str | None) -> None:
    """CompileError if an image has an application, which does not answer frames."""
    if app is not None:
        raise CompileError(
            "app: an image with an application of your own does not run the server",
            need="an image without --app, to send inputs to it",
            try_=GUIDE,
        )


def never_called(run: str) -> CompileError:
    return CompileError(
        "--app: the application never runs the model",
        need=f"a call of {run} or of bt_model_call, from {MAIN} or a function that it calls",
        try_=GUIDE,
    )

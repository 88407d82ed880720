"""Links a user's application into the image: C files whose bt_main runs instead of the frame server."""

from __future__ import annotations

from pathlib import Path

from baretorch.errors import CompileError
from baretorch.targets.types import Board

MAIN = "bt_main"
GUIDE = "docs/how-to/your-own-application.md"
_LINES = 12  # of a compiler's message


def app_sources(folder: Path, board: Board) -> tuple[Path, ...]:
    """Return the application's C files in a fixed order. Raises CompileError if there are none, or the board does not
    support it."""
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
    """Return the error for C that does not compile or link, with the first lines of the message."""
    return CompileError(f"--app: {what}", have=said.strip().splitlines()[:_LINES], try_=GUIDE)


def need_server(app: str | None) -> None:
    """Raise CompileError if an image has an application, because it does not reply to frames."""
    if app is not None:
        raise CompileError(
            "app: an image with an application of your own does not run the server",
            need="an image without --app, to send inputs to it",
            try_=GUIDE,
        )


def uncalled_model(run: str) -> CompileError:
    return CompileError(
        "--app: the application never runs the model",
        need=f"a call of {run} or of bt_model_call, from {MAIN} or a function that it calls",
        try_=GUIDE,
    )

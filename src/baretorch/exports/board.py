"""Return the runtime for a board as files of a project: start-up code, console, counter, linker script."""

from __future__ import annotations

import re
from pathlib import Path

from baretorch.emit import KERNELS
from baretorch.errors import InternalError
from baretorch.targets.linker import linker_script
from baretorch.targets.runtime import RUNTIME, board_header, runtime_sources
from baretorch.targets.types import Board

_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_MADE = "bt_board.h"
_SERVER = "serve.c"  # replaced by the project's own program


def board_files(board: Board) -> dict[str, str]:
    """Return the files of the runtime for a board, by their paths in its folder."""
    files = {_MADE: board_header(board), "link.ld": linker_script(board)}
    waiting = [path for path in runtime_sources(board) if path.name != _SERVER]
    while waiting:
        path = waiting.pop()
        name = str(path.relative_to(RUNTIME if path.is_relative_to(RUNTIME) else KERNELS))
        if name not in files:
            files[name] = path.read_text("utf-8")
            waiting += [_find(path, include) for include in _INCLUDE.findall(files[name]) if include != _MADE]
    return dict(sorted(files.items()))


def _find(source: Path, include: str) -> Path:
    for folder in (source.parent, RUNTIME, KERNELS):
        if (folder / include).is_file():
            return (folder / include).resolve()
    raise InternalError(f"{source.name} includes {include}, which is nowhere")

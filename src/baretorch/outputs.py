"""What may be replaced by what Baretorch writes: regular files that it made before, and nothing else.

A file of ours is known by how it begins. Kernels and images have no mark of their own; they are ours where a file that
has one lies beside them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from baretorch.errors import CompileError

Mark: TypeAlias = Callable[[bytes], bool]

_HEAD = 4096  # bytes in which a mark stands
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_BESIDE = ("model.h", "bt_board.h")  # C files have the one, images the other
_UNMARKED = (".elf", ".map", ".bin", ".hex", ".uf2")


def text_of_ours(head: bytes) -> bool:
    """C, linker scripts and pages."""
    return b"Baretorch" in head


def graph_text(head: bytes) -> bool:
    return head.startswith(b"graph ")


def pte(head: bytes) -> bool:
    return head[4:6] == b"ET"


def png(head: bytes) -> bool:
    return head.startswith(b"\x89PNG")


def check_file(path: Path, made: Mark = text_of_ours, option: str = "--out") -> None:
    """CompileError if something is there that we did not make; a link is not followed."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise CompileError(f"cannot write {path}", have=str(error), try_=f"another place with {option}") from error
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), None)
    if kind is None and _begins(path, made):
        return
    raise CompileError(
        f"{path} is not a file that Baretorch made, and stays as it is",
        have=kind or "a file of others",
        try_=f"another place with {option}, or remove it",
    )


def check_files(folder: Path, files: list[Path], option: str = "--out") -> None:
    """The same for files below a folder, and for the folders on the way to them, which may not be links."""
    ours = any(_is_marked(folder / name) for name in _BESIDE)
    between = {above for path in files for above in path.parents if folder in above.parents}
    for above in sorted(between):
        if above.is_symlink() or (above.exists() and not above.is_dir()):
            raise CompileError(
                f"{above} is not a folder that Baretorch made, and stays as it is",
                have="a symbolic link" if above.is_symlink() else "a file",
                try_=f"another place with {option}, or remove it",
            )
    for path in files:
        unmarked = path.suffix in _UNMARKED or path.parent != folder
        check_file(path, _anything if unmarked and ours else text_of_ours, option)


def _anything(head: bytes) -> bool:
    return True


def _is_marked(path: Path) -> bool:
    return not path.is_symlink() and path.is_file() and _begins(path, text_of_ours)


def _begins(path: Path, made: Mark) -> bool:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return made(file.read(_HEAD))
    except OSError:
        return False

"""Read files that users, drives and caches name: regular files only.

Opening a pipe blocks until another process writes to it, and a device may never end. Both are refused before they are
opened.
"""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from baretorch.escape import short

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def special_kind(mode: int) -> str | None:
    """Return the name of a special file's kind, or None for a regular file."""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), None)


def describe_missing(path: str | Path) -> str:
    """Return the first line of an error about a path at which there is no regular file."""
    try:
        kind = special_kind(os.stat(path).st_mode)
    except (OSError, ValueError):
        kind = None
    return f"{path} is {kind}, not a file" if kind else f"there is no file {path}"


def read_file(path: Path, most: int = -1, follow: bool = True) -> bytes:
    """Return the contents of a regular file, at most the first `most` bytes; OSError if it is anything else. Without
    `follow` a symbolic link is refused too."""
    need_regular(path, follow)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        _need_mode(os.fstat(file.fileno()).st_mode, path)  # it may have been replaced since
        return file.read(most)


def read_text(path: Path) -> str:
    """Return the text of a regular UTF-8 file; OSError if it is anything else."""
    return read_file(path).decode("utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file; OSError or UnicodeDecodeError if it cannot be read, ValueError with a reason
    if it is not TOML."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("arrays or tables in each other, too deep to read") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(short(str(error))) from None
    except ValueError:  # Python reads at most 4,300 digits
        raise ValueError("a number of thousands of digits") from None


def need_regular(path: Path, follow: bool = True) -> None:
    """Raise OSError if there is no regular file at this path, for readers that open it themselves."""
    _need_mode(os.stat(path, follow_symlinks=follow).st_mode, path)


def _need_mode(mode: int, path: Path) -> None:
    kind = special_kind(mode)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind is not None:
        raise OSError(f"{kind}, not a file")

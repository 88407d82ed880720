"""The user's cache folder: object files that come out the same every time."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


def cache_folder() -> Path:
    """The cache; where none can be, a folder that this process alone has."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "baretorch"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return _own_folder()
    return folder if os.access(folder, os.W_OK | os.X_OK) else _own_folder()


@cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="baretorch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def fingerprint(*parts: str | bytes) -> str:
    """A name for what these parts make. The lengths keep ("ab", "c") from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()[:32]


def keep(source: Path, target: Path) -> Path:
    """Copies a file so that `target` is whole or absent, also when several processes do it at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent)
    try:
        os.close(handle)
        shutil.copy(source, name)
        os.replace(name, target)
    except BaseException:  # a full disk, or somebody who does not want to wait
        Path(name).unlink(missing_ok=True)
        raise
    return target

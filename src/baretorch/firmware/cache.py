"""The user's cache folder: object files that come out the same every time."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "baretorch"


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
    os.close(handle)
    shutil.copyfile(source, name)
    os.replace(name, target)
    return target

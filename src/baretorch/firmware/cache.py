"""The user's cache folder, for results of compiling and measuring that are always the same.

An entry is one file: a line with the SHA-256 of its key and of the rest, a line of JSON with names and sizes, and the
files' bytes. One that is damaged, such as by a power cut, or belongs to another key counts as missing and is rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.files.read import read_file
from baretorch.files.write import ready_folder, scratch_of, store_entry


def cache_folder() -> Path:
    """Return the cache folder, or a temporary folder of this process if it cannot be created."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = ready_folder((Path(base) if base else Path.home() / ".cache") / "baretorch")
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return _own_folder()
    return folder if os.access(folder, os.W_OK | os.X_OK) else _own_folder()


@cache
def _own_folder() -> Path:
    return scratch_of(fingerprint)[0]


def fingerprint(*parts: str | bytes) -> str:
    """Return a key for a result with these parts. Lengths distinguish ("ab", "c") from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()[:32]


def recall(kind: str, key: str) -> dict[str, bytes] | None:
    """Return the files of an entry by name, or None if there is no complete entry."""
    try:
        checksum, _, rest = read_file(_entry(kind, key)).partition(b"\n")
    except OSError:
        return None
    if _checksum(kind, key, rest) != checksum:
        return None
    index, _, data = rest.partition(b"\n")
    files, at = {}, 0
    for name, size in json.loads(index).items():
        files[name] = data[at : at + size]
        at += size
    return files


def remember(kind: str, key: str, files: Mapping[str, bytes]) -> None:
    """Store files under a key. If that fails, they are computed again the next time."""
    index = json.dumps({name: len(data) for name, data in files.items()}).encode()
    rest = b"\n".join((index, b"".join(files.values())))
    with suppress(CompileError, OSError):
        store_entry(_entry(kind, key), _checksum(kind, key, rest) + b"\n" + rest)


def recall_program(name: str, key: str) -> Path | None:
    """Return the path of a program or library in the cache, or None if there is no complete entry."""
    path, known = cache_folder() / "programs" / name, recall("programs", key)
    try:
        whole = known is not None and hashlib.sha256(read_file(path)).digest() == known["sha256"]
    except OSError:
        return None
    return path if whole else None


def remember_program(name: str, key: str, data: bytes) -> Path:
    """Store a program or library, and return its path."""
    path = cache_folder() / "programs" / name
    store_entry(path, data, 0o777)
    remember("programs", key, {"sha256": hashlib.sha256(data).digest()})
    return path


def _checksum(kind: str, key: str, rest: bytes) -> bytes:
    return hashlib.sha256(f"{kind}/{key}\n".encode() + rest).hexdigest().encode()


def _entry(kind: str, key: str) -> Path:
    return cache_folder() / kind / f"{key}.entry"

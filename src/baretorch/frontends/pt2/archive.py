"""Reads the zip archive of a `.pt2`, and the one that torch.save writes, without trusting any number in it.

torch stores members as they are, so nothing is decompressed here: what a member takes in memory, it takes in the file.
Nothing is extracted to disk either; a name that leaves the archive's own folder is refused all the same.
"""

from __future__ import annotations

import io
import json
import stat
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

from baretorch.frontends.untrusted import damaged_file

MAX_JSON = 16 << 20  # bytes; a node takes about one kilobyte
damaged = partial(damaged_file, ".pt2")


class Archive:
    """The members of one archive by name, without the folder that contains all of them."""

    def __init__(self, file: Path | bytes) -> None:
        self._size = file.stat().st_size if isinstance(file, Path) else len(file)
        try:
            self._zip = zipfile.ZipFile(file if isinstance(file, Path) else io.BytesIO(file))
            members = self._zip.infolist()
        except Exception as error:  # zipfile raises many kinds
            raise damaged(f"it is not a zip archive ({error})") from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        folders = set()
        for member in members:
            folder, _, name = _check_name(member).partition("/")
            if name in self._members:
                raise damaged(f"it has two members {name!r}")
            folders.add(folder)
            self._members[name] = member
        if len(folders) != 1:
            raise damaged(f"its members are in {len(folders)} folders, not in one")
        if sum(m.file_size for m in members) > self._size:
            raise damaged(f"its members claim more than its {self._size:,} bytes")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    @property
    def size(self) -> int:
        return self._size

    def read(self, name: str) -> bytes:
        if name not in self._members:
            raise damaged(f"{name!r} is missing")
        try:
            return self._zip.read(self._members[name])
        except Exception as error:
            raise damaged(f"{name!r} cannot be read ({error})") from None

    def json(self, name: str) -> Any:
        raw = self.read(name)
        if len(raw) > MAX_JSON:
            raise damaged(f"{name!r} has {len(raw):,} bytes, more than {MAX_JSON:,}")
        return parse_json(raw, name)

    def close(self) -> None:
        self._zip.close()


def parse_json(raw: bytes | str, name: str) -> Any:
    """Parse a file's JSON."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise damaged(f"{name} is nested too deeply") from None
    except (ValueError, TypeError) as error:
        raise damaged(f"{name} is not valid JSON ({error})") from None


def _check_name(member: zipfile.ZipInfo) -> str:
    """Return the member's name if torch could have written it."""
    name = member.filename
    parts = name.split("/")
    if len(parts) < 2 or not all(parts) or {".", ".."} & set(parts) or "\\" in name or not name.isprintable():
        raise damaged(f"it has a member {name!r}, which is not a path inside the archive")
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
        raise damaged(f"{name!r} is compressed, which torch.export.save does not do")
    if member.flag_bits & 1:
        raise damaged(f"{name!r} is encrypted")
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise damaged(f"{name!r} is a link or a device, not a file")
    return name

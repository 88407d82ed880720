"""Write a project into a folder that may contain one already. The user's changes are never lost.

`.baretorch.json` lists the written files with their hashes: a file that still has its hash may be overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.files.ownership import check_file
from baretorch.files.read import read_file
from baretorch.files.write import Folder, open_folder

RECORD = ".baretorch.json"


def write(folder: Path, files: Mapping[str, str], force: bool) -> list[Path]:
    """Write all files, or none. With `force`, files that others changed are kept under another name; return those."""
    need_folder(folder)
    marks = {name: _hash(text.encode()) for name, text in sorted(files.items())}
    with open_folder(folder) as target:
        check_file(folder / RECORD, lambda head: head.lstrip().startswith(b"{"))
        ours = _record(folder)
        changed = [name for name in sorted(files) if not _replaceable(folder, name, ours.get(name), files[name])]
        if changed and not force:
            raise CompileError(
                f"{folder} has files that are not as Baretorch wrote them, and nothing was written",
                have=changed,
                try_="another place with --out, or --force, which keeps copies of them",
            )
        record = json.dumps({"files": marks}, indent=1) + "\n"
        kept = target.write({**files, RECORD: record}, aside=changed)
        _drop(target, folder, {name: mark for name, mark in ours.items() if name not in files})
    return [folder / name for name in kept]


def need_folder(folder: Path) -> None:
    """Raise CompileError if the path is not a folder."""
    if folder.exists() and not folder.is_dir():
        raise CompileError(f"cannot write to {folder}", have="a file", try_="another place with --out")


def _drop(target: Folder, folder: Path, marks: Mapping[str, str]) -> None:
    """Remove generated files that the project no longer has, because SDKs compile all files that they find."""
    for name, mark in marks.items():
        path = folder / name
        if not _leads_out(folder, path) and path.is_file() and _hash(read_file(path)) == mark:
            target.remove(name)


def _leads_out(folder: Path, path: Path) -> bool:
    """Return whether a path of the record leads out of the folder: the record may have been edited."""
    below = [p for p in (path, *path.parents) if folder in p.parents]
    return ".." in path.parts or not below or any(p.is_symlink() for p in below)


def _record(folder: Path) -> dict[str, str]:
    """Read the record; an invalid one counts as empty."""
    try:
        files = json.loads(read_file(folder / RECORD, follow=False))["files"]
        return {str(name): str(mark) for name, mark in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _replaceable(folder: Path, name: str, mark: str | None, text: str) -> bool:
    """Return whether a file is absent, or is as we wrote it, or as we would write it."""
    path = folder / name
    between = [above for above in path.parents if folder in above.parents]
    if any(above.is_symlink() or (above.exists() and not above.is_dir()) for above in between):
        raise CompileError(f"cannot write {path}", have="a part of the path that is not a folder")
    if not path.exists() and not path.is_symlink():
        return True
    if path.is_symlink() or not path.is_file():
        raise CompileError(f"cannot write {path}", have="something that is not a file", try_="another place with --out")
    return _hash(read_file(path)) in (mark, _hash(text.encode()))


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()

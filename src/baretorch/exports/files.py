"""Writes a project into a folder that may hold one already: what its owner changed there is never lost.

`.baretorch.json` tells what was written: a file that still is what it says may be replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from baretorch.errors import CompileError

RECORD = ".baretorch.json"


def write(folder: Path, files: Mapping[str, str], force: bool) -> list[Path]:
    """Write all files, or none. With `force` what others changed is kept under another name: gives those."""
    need_folder(folder)
    ours = _record(folder)
    changed = [name for name in sorted(files) if not _replaceable(folder, name, ours.get(name), files[name])]
    if changed and not force:
        raise CompileError(
            f"{folder} has files that are not as Baretorch wrote them, and nothing was written",
            have=changed,
            try_="another place with --out, or --force, which keeps copies of them",
        )
    marks = {name: _hash(text.encode()) for name, text in sorted(files.items())}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(
            prefix=".baretorch-", dir=folder
        ) as made:  # what fails, fails before anything is changed
            for name, text in {**files, RECORD: json.dumps({"files": marks}, indent=1) + "\n"}.items():
                (Path(made) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(made) / name).write_text(text, "utf-8")
            kept = [_put_aside(folder / name) for name in changed]
            for name in (*files, RECORD):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(made) / name).replace(folder / name)
        _drop(folder, {name: mark for name, mark in ours.items() if name not in files})
    except OSError as error:
        raise CompileError(f"cannot write to {folder}", have=str(error), try_="another place with --out") from error
    return kept


def need_folder(folder: Path) -> None:
    """CompileError if there is something else."""
    if folder.exists() and not folder.is_dir():
        raise CompileError(f"cannot write to {folder}", have="a file", try_="another place with --out")


def _drop(folder: Path, marks: Mapping[str, str]) -> None:
    """What we wrote before, and the project does not have any more: SDKs compile what they find."""
    for name, mark in marks.items():
        path = folder / name
        if not _leads_out(folder, path) and path.is_file() and _hash(path.read_bytes()) == mark:
            path.unlink()
            for above in path.parents:
                if above == folder or any(above.iterdir()):
                    break
                above.rmdir()


def _leads_out(folder: Path, path: Path) -> bool:
    """A record is a file that others may have written too."""
    below = [p for p in (path, *path.parents) if folder in p.parents]
    return ".." in path.parts or not below or any(p.is_symlink() for p in below)


def _record(folder: Path) -> dict[str, str]:
    """What the record says; one that says nothing sensible says nothing."""
    try:
        files = json.loads((folder / RECORD).read_text("utf-8"))["files"]
        return {str(name): str(mark) for name, mark in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _replaceable(folder: Path, name: str, mark: str | None, text: str) -> bool:
    """Nothing is there, or just what we wrote, or what we would write."""
    path = folder / name
    between = [above for above in path.parents if folder in above.parents]
    if any(above.is_symlink() or (above.exists() and not above.is_dir()) for above in between):
        raise CompileError(f"cannot write {path}", have="something on the way to it that is no folder")
    if not path.exists() and not path.is_symlink():
        return True
    if path.is_symlink() or not path.is_file():
        raise CompileError(f"cannot write {path}", have="something that is no file", try_="another place with --out")
    return _hash(path.read_bytes()) in (mark, _hash(text.encode()))


def _put_aside(path: Path) -> Path:
    n = 0
    while True:
        aside = path.with_name(f"{path.name}.orig{n or ''}")
        if not aside.exists() and not aside.is_symlink():
            return path.rename(aside)
        n += 1


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()

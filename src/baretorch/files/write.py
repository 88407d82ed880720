"""Create, replace and remove files. No other module of Baretorch does (tests/test_writes.py).

- A file appears whole or not at all: it is written under another name in the same folder, flushed to the disk, and
  renamed.
- Links are not followed, neither at a file's own name nor at a folder below the output folder.
- Only files that Baretorch made are replaced (files/ownership.py).
- An output folder is locked while it is written to. The lock ends with the process that holds it.

Files in temporary folders of this process (`scratch`) are intermediate: they are neither locked nor flushed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO, TypeAlias

from baretorch.errors import CompileError
from baretorch.files.ownership import IsOurs, check_file, check_files, text_of_ours, uf2, unwritable

Content: TypeAlias = str | bytes | Path  # a path is that of a file to be moved, from the same file system

LOCK_SECONDS = 60.0  # for another process to finish writing to the folder

_POLL_SECONDS = 0.05
_PIECE = 1 << 20  # characters or bytes
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.EBADF)  # of file systems without locks
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_temporary: set[str] = set()  # folders of this process whose contents do not outlive it


def put(
    path: Path, data: str | bytes, made: IsOurs = text_of_ours, option: str | None = "--out", parents: bool = True
) -> None:
    """Create or replace one output file; with `parents` also the folders above it."""
    with open_folder(path.parent, option, path, parents) as folder:
        check_file(path, made, option)
        folder.write({path.name: data})


def put_all(
    folder: Path, files: Mapping[str, str | bytes], option: str = "--out", made: IsOurs = text_of_ours
) -> tuple[Path, ...]:
    """Create or replace files below an output folder, all or none; return their paths."""
    with open_folder(folder, option) as target:
        target.put(files, option, made)
    return tuple(folder / name for name in files)


def create(path: Path, text: str) -> None:
    """Create a file, and never replace one; FileExistsError if something has this name."""
    with open_folder(path.parent, None, path) as folder:
        folder.create(path.name, text)


@contextmanager
def stage_files(folder: Path) -> Iterator[Path]:
    """Yield a folder to write into. Its files move to `folder` when the block ends well, and vanish otherwise.
    A temporary folder is written to directly."""
    if _is_temporary(folder):
        yield ready_folder(folder)
        return
    with _remove_if_unused(folder), scratch(f".{folder.name}-", _place_of(folder, "--out"), "--out") as work:
        yield work
        found = [path.relative_to(work) for path in sorted(work.rglob("*")) if path.is_file()]
        with open_folder(folder, "--out") as target:
            for name in found:
                _check_place(folder / name)
            target.put({str(name): work / name for name in found}, "--out")


@contextmanager
def scratch(prefix: str = "baretorch-", place: Path | None = None, option: str = "--out") -> Iterator[Path]:
    """Yield a temporary folder, in `place` or the system's default, for intermediate files."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True)
    except OSError as error:
        if place is None:
            raise
        raise unwritable(place, error, option) from error
    with temporary as name:
        _temporary.add(os.path.realpath(name))
        try:
            yield Path(name)
        finally:
            _temporary.discard(os.path.realpath(name))


def scratch_of(owner: object) -> tuple[Path, Callable[[], object]]:
    """Return a new temporary folder and a function that removes it. It is removed with its owner, or when the process
    ends, at the latest."""
    name = tempfile.mkdtemp(prefix="baretorch-")
    _temporary.add(os.path.realpath(name))
    return Path(name), weakref.finalize(owner, shutil.rmtree, name, ignore_errors=True)


def write_scratch(path: Path, data: str | bytes) -> Path:
    """Write an intermediate file below a temporary folder of this process, and the folders that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb") as file:
        _write(file, data)
    return path


def store_entry(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Create or replace a cache entry. Entries do not depend on each other, so the folder is not locked."""
    with open_folder(path.parent, None, path, lock=False) as folder:
        folder.write({path.name: data}, mode)


def ready_folder(path: Path) -> Path:
    """Return a folder, which is created if it does not exist. Raises OSError if that fails."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def copy_to_drive(path: Path, data: bytes) -> None:
    """Write a file to a board's drive under its final name, because a boot loader reads it as it arrives; OSError where
    that fails. An older UF2 file is replaced; anything else of that name stays, and is a CompileError."""
    check_file(path, uf2, "--drive")
    path.unlink(missing_ok=True)
    with open(os.open(path, _NEW, 0o666), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


class Folder:
    """A folder that is open for writing. Names are relative to it, and links on the way to them are refused."""

    def __init__(self, path: Path, stack: ExitStack, lock: bool = True) -> None:
        self._path = path
        self._stack = stack
        self._lasting = not _is_temporary(path)
        self._open: dict[tuple[str, ...], int] = {(): stack.enter_context(_descriptor(path))}
        self._made: list[tuple[int, str]] = []  # folders below it
        if self._lasting and lock:
            _lock(self._open[()])

    def put(self, files: Mapping[str, Content], option: str = "--out", made: IsOurs = text_of_ours) -> None:
        """Create files, or replace those that Baretorch made, and record them. If one file cannot be written, or
        belongs to someone else, no file is written. The record is renamed first. Files in a temporary folder are not
        recorded."""
        record = check_files(self._path, files, option, made) if self._lasting else {}
        self.write({**files, **record})

    def write(self, files: Mapping[str, Content], mode: int = 0o666, aside: Sequence[str] = ()) -> list[str]:
        """Create or replace files: all of them, or none if one cannot be written. Those that are named in `aside` are
        renamed first; return their new names."""
        ready: list[tuple[int, str, str]] = []
        try:
            for name, content in files.items():
                *above, last = PurePath(name).parts
                ready.append((self._enter(tuple(above), make=True), _new_name(), last))
                self._prepare(*ready[-1][:2], content, mode)
            kept = [self._set_aside(name) for name in aside]
            while ready:
                at, temporary, last = ready[-1]
                os.replace(temporary, last, src_dir_fd=at, dst_dir_fd=at)
                ready.pop()
        except BaseException:
            for at, temporary, _ in ready:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=at)
            for at, name in reversed(self._made):
                with suppress(OSError):  # it contains something
                    os.rmdir(name, dir_fd=at)
            raise
        self._flush()
        return kept

    def create(self, name: str, text: str) -> None:
        """Create a file in the folder itself; FileExistsError if something has this name."""
        at, temporary = self._open[()], _new_name()
        try:
            self._prepare(at, temporary, text)
            try:
                os.link(temporary, name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:  # the file system has no hard links
                os.close(os.open(name, _NEW, 0o666, dir_fd=at))
                os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=at)
        self._flush()

    def remove(self, name: str) -> None:
        """Remove a file, and the folders above it that become empty."""
        *above, last = PurePath(name).parts
        os.unlink(last, dir_fd=self._enter(tuple(above)))
        while above:
            *above, last = above
            try:
                os.rmdir(last, dir_fd=self._enter(tuple(above)))
            except OSError:  # it contains something
                return

    def _enter(self, parts: tuple[str, ...], make: bool = False) -> int:
        """Return a descriptor of a folder below this one, which is created with `make`."""
        if ".." in parts or PurePath(*parts).is_absolute():
            raise OSError(errno.EINVAL, "a path that leaves the folder", str(PurePath(*parts)))
        if parts not in self._open:
            at = self._enter(parts[:-1], make)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(parts[-1], dir_fd=at)
                    self._made.append((at, parts[-1]))
            self._open[parts] = self._stack.enter_context(_descriptor(parts[-1], os.O_NOFOLLOW, at))
        return self._open[parts]

    def _prepare(self, at: int, name: str, content: Content, mode: int = 0o666) -> None:
        """Write the content, or move the file that has it, to a name that nothing has yet."""
        if isinstance(content, Path):
            if self._lasting:
                with _descriptor(content, os.O_NOFOLLOW, flags=os.O_RDONLY | os.O_CLOEXEC) as source:
                    os.fsync(source)
            os.rename(content, name, dst_dir_fd=at)
            return
        with open(os.open(name, _NEW, mode, dir_fd=at), "wb") as file:
            _write(file, content)
            file.flush()
            if self._lasting:
                os.fsync(file.fileno())

    def _set_aside(self, name: str) -> str:
        """Rename a file to the first free name of NAME.orig, NAME.orig1 …, and return that."""
        *above, last = PurePath(name).parts
        at, taken, n = self._enter(tuple(above)), last, 0
        with suppress(FileNotFoundError):
            while True:
                taken = f"{last}.orig{n or ''}"
                os.stat(taken, dir_fd=at, follow_symlinks=False)
                n += 1
        os.rename(last, taken, src_dir_fd=at, dst_dir_fd=at)
        return str(PurePath(*above, taken))

    def _flush(self) -> None:
        """Make new names survive a power cut; file systems that cannot do so for folders refuse."""
        for at in self._open.values() if self._lasting else ():
            with suppress(OSError):
                os.fsync(at)


@contextmanager
def open_folder(
    path: Path, option: str | None = "--out", file: Path | None = None, parents: bool = True, lock: bool = True
) -> Iterator[Folder]:
    """Open an output folder for writing, and lock it; with `parents` it is created if it does not exist. An OSError
    inside the block becomes a CompileError about the folder, or its `file`, except in a temporary folder."""
    try:
        with _remove_if_unused(path), ExitStack() as stack:
            try:
                folder = Folder(ready_folder(path) if parents else path, stack, lock)
            except FileExistsError:
                raise _not_a_folder(path) from None
            except ValueError as error:  # a name that no file can have
                raise OSError(errno.EINVAL, str(error)) from error
            yield folder
    except FileExistsError:
        raise
    except BlockingIOError:
        raise CompileError(
            f"another process writes to {path}",
            have=f"it did not finish within {LOCK_SECONDS:g} s",
            try_=f"wait for it, or choose another place{f' with {option}' if option else ''}",
        ) from None
    except OSError as error:
        if _is_temporary(path):
            raise
        raise unwritable(file or path, error, option, "" if file else "to ") from error


def _lock(folder: int) -> None:
    """Lock the folder itself, so that no lock file stays; BlockingIOError if another process keeps it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return
            raise
        time.sleep(_POLL_SECONDS)


@contextmanager
def _descriptor(path: Path | str, more: int = 0, at: int | None = None, flags: int = _FOLDER) -> Iterator[int]:
    number = os.open(path, flags | more, dir_fd=at)
    try:
        yield number
    finally:
        os.close(number)


@contextmanager
def _remove_if_unused(folder: Path) -> Iterator[None]:
    """Remove a folder and those above it that did not exist before, if the block fails and they are empty."""
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        yield
    except BaseException:
        for path in new:
            with suppress(OSError):  # it contains something
                path.rmdir()
        raise


def _place_of(folder: Path, option: str) -> Path:
    """Return the folder that files are collected in before they move to an output folder."""
    try:
        if os.path.lexists(folder) and not folder.is_dir():
            raise _not_a_folder(folder)
        return folder if folder.is_dir() else ready_folder(folder.parent)
    except OSError as error:
        raise unwritable(folder, error, option) from error


def _not_a_folder(path: Path) -> NotADirectoryError:
    """Return the error for a folder that cannot be created, because something else has its name or that of a folder
    above it."""
    there = next(at for at in (path, *path.parents) if os.path.lexists(at))
    kind = "a file" if there.exists() else "a symbolic link to nothing"
    return NotADirectoryError(f"{there} is {kind}")


def _check_place(target: Path) -> None:
    """Raise OSError if the folder that a file moves to is read-only."""
    home = next(path for path in target.parents if path.exists())
    if home.is_dir() and not os.access(home, os.W_OK | os.X_OK):
        raise PermissionError(f"{home} is read-only")


def _is_temporary(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    return any(str(each) in _temporary for each in (real, *real.parents))


def _new_name() -> str:
    return f".baretorch-{secrets.token_hex(8)}"


def _write(file: BinaryIO, data: str | bytes) -> None:
    """Write text as UTF-8 in pieces, because the text of weights is too large to hold twice."""
    for at in range(0, len(data), _PIECE):
        piece = data[at : at + _PIECE]
        file.write(piece.encode("utf-8") if isinstance(piece, str) else piece)

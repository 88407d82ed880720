"""Keep what compilers make in the user's cache: tests compile the same C in many places, and again in each `make test`.

A key is made of the compiler, its options, and the contents of all files that it may read. Only what compiles without
a message is kept. The files in sanitized.PLAIN are about compilers and go without.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from unittest import mock

from baretorch.firmware import toolchain
from baretorch.firmware.cache import cache_folder, fingerprint, recall, remember

KIND = "tests"
LIMIT = 1 << 30  # bytes that are kept from one session to the next
SOURCES = {".c", ".cpp", ".S"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)  # no name in our C is a macro
MAPS = ("-ffile-prefix-map=", "-fdebug-prefix-map=", "-fmacro-prefix-map=")
_RUN = toolchain._run


def run_once(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler in a folder, or take what it made of the same files before."""
    key = _key(command, folder)
    if key is None:
        return _RUN(command, folder)
    output = folder / command[command.index("-o") + 1]
    usage = output.with_suffix(".su")  # of the stack, which gcc writes if it is asked to
    kept = recall(KIND, key)
    if kept is not None:
        with suppress(OSError):
            os.utime(cache_folder() / KIND / f"{key}.entry")
        for path, name in ((output, "output"), (usage, "usage")):
            if name in kept:
                path.write_bytes(kept[name])
        if "-c" not in command:
            output.chmod(0o755)
        return subprocess.CompletedProcess(command, 0, "", "")
    usage.unlink(missing_ok=True)
    done = _RUN(command, folder)
    if done.returncode == 0 and not done.stderr:
        made = {"output": output.read_bytes()}
        remember(KIND, key, made | ({"usage": usage.read_bytes()} if usage.exists() else {}))
    return done


@contextmanager
def compile_once(enabled: bool = True) -> Iterator[None]:
    """Let Baretorch's toolchains compile the same files once."""
    with mock.patch.object(toolchain, "_run", run_once if enabled else _RUN):
        yield


def forget_oldest() -> None:
    """Delete what was not used for longest, beyond the limit."""
    entries = []
    for entry in (cache_folder() / KIND).glob("*.entry"):
        with suppress(OSError):
            entries.append((entry.stat().st_mtime, entry.stat().st_size, entry))
    room = LIMIT
    for _, size, entry in sorted(entries, reverse=True):
        room -= size
        if room < 0:
            entry.unlink(missing_ok=True)


def _key(command: Sequence[str], folder: Path) -> str | None:
    """Return a key for what a command makes, or None if it is not a compilation."""
    if "-o" not in command or not any(Path(word).suffix in SOURCES for word in command):
        return None  # such as one that only links
    driver = command[: command.index("cc")] if "cc" in command[:4] else command[:1]  # Zig's compiler is `zig cc`
    version = _version(*driver, "version" if len(driver) > 1 or Path(driver[0]).name == "zig" else "--version")
    if version is None:
        return None
    words, files, folders = [], [], []
    for before, word in zip(["", *command], command, strict=False):
        path = folder / word
        if word.startswith(MAPS):
            continue
        if word.startswith("-I"):
            folders.append(folder / word[2:])
            words.append("-I")
        elif before == "-o":
            words.append(path.name)
        elif not word.startswith("-") and path.suffix and path.is_file():
            files.append(path)
            words.append(path.name)
        else:
            words.append(word)
    contents = [_digest(path) for path in files]
    for path in files:
        contents += map(_digest, _included(path, folders))
    return fingerprint(version, *words, "", *contents)


@cache
def _version(*command: str) -> str | None:
    """Return a text that identifies this compiler, or None if the program is not a compiler."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{command[0]} {done.stdout}" if done.returncode == 0 else None


def _included(source: Path, folders: Sequence[Path]) -> dict[Path, None]:
    """Return the files that a source may include, directly or not. A compiler's own are part of its version."""
    found: dict[Path, None] = {}
    waiting = [source] if source.suffix in SOURCES else []
    while waiting:
        path = waiting.pop()
        for name in _includes(path, *_state(path)):
            near = (folder / name for folder in (path.parent, *folders))
            target = next((file.resolve() for file in near if file.is_file()), None)
            if target is not None and target not in found:
                found[target] = None
                waiting.append(target)
    return found


@lru_cache(maxsize=1 << 14)
def _includes(path: Path, *state: int) -> list[str]:
    return INCLUDE.findall(path.read_text(errors="replace"))


def _digest(path: Path) -> str:
    return _digest_of(path, *_state(path))


@lru_cache(maxsize=1 << 14)
def _digest_of(path: Path, *state: int) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _state(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file does."""
    state = path.stat()
    return state.st_mtime_ns, state.st_size, state.st_ino

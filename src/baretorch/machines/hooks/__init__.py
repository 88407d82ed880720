"""C that runs inside the emulators; it is compiled once per user and version."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from baretorch.errors import InternalError
from baretorch.files.write import scratch
from baretorch.firmware.cache import fingerprint, recall_program, remember_program
from baretorch.firmware.tools import run_tool

HERE = Path(__file__).parent
FLAGS = ("-std=gnu99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SHARED = ("-shared", "-fPIC")


def shared_library(*sources: str, folder: Path = HERE) -> Path:
    """Return a shared library made from C files of this folder, or another one. It is kept in the user's cache."""
    return _build([folder / source for source in sources], SHARED, (), ".so")


def program(source: str, *libraries: str) -> Path:
    """Return a program made from a C file of this folder and libraries of the system. It is kept in the user's
    cache."""
    return _build([HERE / source], (), tuple(f"-l{name}" for name in libraries), "")


def _build(paths: list[Path], kind: tuple[str, ...], libraries: tuple[str, ...], suffix: str) -> Path:
    compiler = _compiler()
    files = (path.read_bytes() for path in (*paths, *sorted(paths[0].parent.glob("*.h"))))
    name = fingerprint(*compiler, *FLAGS, *kind, *libraries, platform.system(), platform.machine(), *files)
    file = f"{paths[0].stem}-{name}{suffix}"
    return recall_program(file, name) or remember_program(
        file, name, _compile((*compiler, *FLAGS, *kind), paths, libraries)
    )


def _compiler() -> tuple[str, ...]:
    found = shutil.which("cc")
    return (found,) if found else (sys.executable, "-P", "-m", "ziglang", "cc")


def _compile(command: tuple[str, ...], sources: list[Path], libraries: tuple[str, ...]) -> bytes:
    with scratch() as folder:
        run = run_tool([*command, *map(str, sources), *libraries, "-o", "made"], folder)
        if run.returncode:
            raise InternalError(f"{sources[0].name} does not compile\n{run.stderr}")
        return (folder / "made").read_bytes()

"""C that runs inside the emulators, compiled once per user and version with the host's compiler, or Zig's."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from pathlib import Path

from baretorch.errors import InternalError
from baretorch.firmware.cache import cache_folder, fingerprint, keep
from baretorch.firmware.tools import run_tool

FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def shared_library(source: str) -> Path:
    """The shared library made from a C file of this folder, from the user's cache if it is there."""
    path = Path(__file__).with_name(source)
    compiler = _compiler()
    name = fingerprint(*compiler, *FLAGS, platform.system(), platform.machine(), path.read_bytes())
    library = cache_folder() / "hooks" / f"{path.stem}-{name}.so"
    return library if library.exists() else _compile(compiler, path, library)


def _compiler() -> tuple[str, ...]:
    found = shutil.which("cc")
    return (found,) if found else (sys.executable, "-m", "ziglang", "cc")


def _compile(compiler: tuple[str, ...], source: Path, library: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / library.name
        run = run_tool([*compiler, *FLAGS, str(source), "-o", str(made)], Path(folder))
        if run.returncode:
            raise InternalError(f"{source.name} does not compile\n{run.stderr}")
        return keep(made, library)

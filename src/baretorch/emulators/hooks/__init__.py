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

HERE = Path(__file__).parent
FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def shared_library(*sources: str, folder: Path = HERE) -> Path:
    """The shared library made from C files of this folder, or another, from the user's cache if it is there."""
    paths = [folder / source for source in sources]
    compiler = _compiler()
    files = (path.read_bytes() for path in (*paths, *sorted(folder.glob("*.h"))))
    name = fingerprint(*compiler, *FLAGS, platform.system(), platform.machine(), *files)
    library = cache_folder() / "hooks" / f"{paths[0].stem}-{name}.so"
    return library if library.exists() else _compile(compiler, paths, library)


def _compiler() -> tuple[str, ...]:
    found = shutil.which("cc")
    return (found,) if found else (sys.executable, "-m", "ziglang", "cc")


def _compile(compiler: tuple[str, ...], sources: list[Path], library: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / library.name
        run = run_tool([*compiler, *FLAGS, *map(str, sources), "-o", str(made)], Path(folder))
        if run.returncode:
            raise InternalError(f"{sources[0].name} does not compile\n{run.stderr}")
        return keep(made, library)

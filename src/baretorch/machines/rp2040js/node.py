"""Find node and the npm package rp2040js."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from baretorch.errors import CompileError

PACKAGE, VERSION = "rp2040js", "1.4.1"


def is_installed() -> bool:
    """Report whether node and the package in our version are installed."""
    try:
        return bool(find_node() and find_package())
    except CompileError:
        return False


def find_node() -> str:
    """Return the program node; CompileError with the remedy if it is not installed."""
    node = shutil.which("node")
    if node is None:
        raise CompileError(
            f"the emulator {PACKAGE} needs Node.js", need="the program node, version 18 or later", try_=_remedy()
        )
    return node


def find_package() -> Path:
    """Return the package's entry; CompileError with the remedy if it is not installed, or another version is."""
    found = _find()
    if found is None:
        raise CompileError(
            f"the emulator {PACKAGE} needs the npm package of that name", need=f"version {VERSION}", try_=_remedy()
        )
    folder, version = found
    if version != VERSION:
        raise CompileError(
            f"the emulator {PACKAGE} needs version {VERSION} of its npm package",
            have=f"version {version}",
            need=f"version {VERSION}, which our additions were written for",
            try_=_remedy(),
        )
    return folder / "dist" / "esm" / "index.js"


def installed_version() -> str | None:
    """Return the version of the package that is installed, if there is one."""
    found = _find()
    return found[1] if found else None


def _find() -> tuple[Path, str] | None:
    """Find the package's folder and version."""
    for folder in (root / PACKAGE for root in package_roots()):
        with suppress(OSError, ValueError, KeyError):
            return folder, str(json.loads((folder / "package.json").read_text())["version"])
    return None


def package_roots() -> tuple[Path, ...]:
    """Return the folders into which npm installs for all users: next to this Python, in what NODE_PATH lists, and where
    node itself is. The current folder is not among them: it may contain other people's code."""
    listed = [Path(p) for p in os.environ.get("NODE_PATH", "").split(os.pathsep) if p]
    node = shutil.which("node")
    near_node = [Path(node).resolve().parents[1] / "lib" / "node_modules"] if node else []
    return (
        Path(sys.prefix) / "lib" / "node_modules",
        *listed,
        *near_node,
        Path("/usr/local/lib/node_modules"),
    )


def _remedy() -> list[str]:
    return [
        "`apt-get install nodejs npm`",
        f"`npm install --global {PACKAGE}@{VERSION}`; where you may not, add `--prefix` and the folder of your venv",
    ]

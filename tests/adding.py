"""Add something to a copy of the package by the steps of docs/contributing, and count the files that it takes."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import baretorch

PACKAGE = Path(baretorch.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "tests" / "frontends" / "data" / "cnn.pte"


class ChangedPackage:
    """A copy of the package that a test changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "src" / "baretorch"
        shutil.copytree(PACKAGE, self.tree, ignore=shutil.ignore_patterns("__pycache__"))

    def insert(self, file: str, after: str, lines: str) -> None:
        """Insert lines after a text that the file has once, such as the first line of a table."""
        text = (self.tree / file).read_text()
        assert text.count(after) == 1, f"{file} has no line {after!r}"
        (self.tree / file).write_text(text.replace(after, after + lines))

    def write(self, file: str, text: str) -> None:
        (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / file).write_text(text)

    def changed(self) -> list[str]:
        """Return the files that are new or differ from those of the package."""
        written = [f.relative_to(self.tree).as_posix() for f in self.tree.rglob("*") if f.is_file()]
        written = [name for name in written if "__pycache__" not in name]
        same = filecmp.cmpfiles(PACKAGE, self.tree, written, shallow=False)[0]
        return sorted(set(written) - set(same))

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the changed package."""
        environment = {**os.environ, "PYTHONPATH": str(self.tree.parent)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run a command of the changed package, and return its JSON."""
        done = self.python("-m", "baretorch", *arguments, "--json")
        made: dict[str, Any] = json.loads(done.stdout)
        return made

"""Runs command lines in this process, and compares texts with the golden ones."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baretorch.cli import run_command
from baretorch.targets.boards import board_names

MODELS = Path(__file__).parent / "models"
GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Exactly one JSON object on standard output."""
        data = json.loads(self.out)
        assert isinstance(data, dict)
        return data


def baretorch(*arguments: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(arguments)
    return Result(code, out.getvalue(), err.getvalue())


def copy_model(name: str, folder: Path) -> str:
    """A model file in the current folder, so that messages name it without a path."""
    shutil.copy(MODELS / f"{name}.py", folder)
    return f"{name}.py"


def boards_in(text: str) -> list[list[str]]:
    """Return every sorted list of three or more boards in a text."""
    lists = [found[0].split(", ") for found in _board_lists().finditer(text)]
    return [names for names in lists if names == sorted(set(names))]


def _board_lists() -> re.Pattern[str]:
    name = "|".join(sorted(map(re.escape, board_names()), key=len, reverse=True))
    return re.compile(rf"\b(?:(?:{name}), ){{2,}}(?:{name})\b")


def check_golden(name: str, text: str) -> None:
    """Compare with golden/<name>.txt, where BOARDS is any sorted list of boards, so that a new board changes no file.

    UPDATE_GOLDEN=1 writes the file instead.
    """
    path = GOLDEN / f"{name}.txt"
    for names in boards_in(text):
        text = text.replace(", ".join(names), "BOARDS")
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"differs from {path.name}; UPDATE_GOLDEN=1 accepts it"

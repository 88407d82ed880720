"""Model files import their neighbours, each its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from baretorch.frontends.model_file import import_file, load_model_file

FILE = """
from types import SimpleNamespace
from neighbour import VALUE

def model():
    from package.late import LATE
    return SimpleNamespace(forward=print, value=VALUE + LATE)

def inputs():
    return ()
"""


def folder(path: Path, value: str) -> Path:
    (path / "package").mkdir(parents=True)
    (path / "package" / "__init__.py").touch()
    (path / "package" / "late.py").write_text(f"LATE = '{value} late'\n")
    (path / "neighbour.py").write_text(f"VALUE = '{value}, '\n")
    (path / "net.py").write_text(FILE)
    return path / "net.py"


def test_neighbours_of_one_name_in_two_folders(tmp_path: Path) -> None:
    """Also where a function imports them, after the file itself was imported."""
    found = [load_model_file(folder(tmp_path / name, name))[0].value for name in ("a", "b")]
    assert found == ["a, a late", "b, b late"]


@pytest.mark.parametrize("load", [import_file, load_model_file])
def test_nothing_stays_behind(tmp_path: Path, load) -> None:  # type: ignore[no-untyped-def]
    path = list(sys.path)
    load(folder(tmp_path, "x"))
    assert sys.path == path
    assert not {"neighbour", "package", "package.late"} & set(sys.modules)

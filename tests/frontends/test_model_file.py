"""Model files import their neighbours, each its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.frontends.model_file import load_model_file
from baretorch.frontends.user_code import import_file

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
def test_nothing_remains(tmp_path: Path, load) -> None:  # type: ignore[no-untyped-def]
    path = list(sys.path)
    load(folder(tmp_path, "x"))
    assert sys.path == path
    assert not {"neighbour", "package", "package.late"} & set(sys.modules)


@pytest.mark.parametrize("load", [import_file, load_model_file])
def test_every_module_can_be_found(tmp_path: Path, load) -> None:  # type: ignore[no-untyped-def]
    """Under a name that is its own: of two that are read, none takes the place of the other."""
    known = set(sys.modules)
    for name in ("a", "b"):
        load(folder(tmp_path / name, name))
    new = {name: sys.modules[name] for name in set(sys.modules) - known}
    assert all(m.__name__ == name for name, m in new.items())
    assert sorted(m.VALUE for name, m in new.items() if name.endswith("neighbour")) == ["a, ", "b, "]
    assert len([name for name in new if name.endswith("_net")]) == 2


def test_an_interrupt_is_no_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        import_file(tmp_path / "net.py")


def test_samples_are_read_again(tmp_path: Path) -> None:
    """A list may be read twice, and stopping early is not an error."""
    path = folder(tmp_path, "x")
    path.write_text(FILE + "\ndef calibration():\n    return [1, 2]\n")
    samples = load_model_file(path)[2]
    assert samples is not None
    assert next(iter(samples)) == 1
    assert list(samples) == [1, 2]


def test_torch_logs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handlers hold on to standard error; what was disabled before stays so afterwards."""
    import torch

    from baretorch.frontends.torch.export import export_module

    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", records.append)
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addHandler(handler)
    before = logging.root.manager.disable
    try:
        with pytest.raises(CompileError, match="cannot export this model"):
            export_module(torch.nn.Linear(4, 2), (torch.ones(1, 5),))
    finally:
        logger.removeHandler(handler)
    assert (records, logging.root.manager.disable) == ([], before)

"""The cache is a help, not a need."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from baretorch.firmware.cache import cache_folder, keep


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    kept = keep(tmp_path / "file", cache_folder() / "objects" / "file")
    assert kept.read_text() == "x" and cache_folder() in kept.parents


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: str, **_: bool) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "made").write_bytes(b"whole")
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        keep(tmp_path / "made", tmp_path / "cache" / "kept")
    assert list((tmp_path / "cache").iterdir()) == []

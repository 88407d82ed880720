"""The cache is a help, not a need."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.firmware.cache import cache_folder, keep


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    kept = keep(tmp_path / "file", cache_folder() / "objects" / "file")
    assert kept.read_text() == "x" and cache_folder() in kept.parents

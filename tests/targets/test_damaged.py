"""Absurd TOML gives an error of a few lines that names the mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import load_board
from tests.cli.program import check_golden

BOARD = """title = "A board"
chip = "rp2040"
emulators = ["unicorn"]
flash_methods = ["uf2"]
notes = ""
"""
DAMAGED = {
    "deep_arrays": BOARD.replace('"A board"', "[" * 5000),
    "deep_tables": BOARD.replace('"A board"', "{a = " * 5000),
    "long_name": BOARD.replace("rp2040", "r" * 5000),
    "long_key": BOARD + "k" * 5000 + " = 1\n",
    "long_number": BOARD.replace('"A board"', "9" * 5000),
    "traversal": BOARD.replace("rp2040", "../../rp2040"),
    "nul": BOARD.replace("rp2040", "rp\\u0000"),
    "wrong_types": BOARD.replace('["unicorn"]', '[["unicorn"], 1.5]'),
    "large_value": BOARD.replace('["unicorn"]', "{" + ", ".join(f"k{i} = {i}" for i in range(1000)) + "}"),
    "date": BOARD.replace('"A board"', "2026-01-01"),
    "not_text": "\ud800",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_toml(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("board.toml").write_bytes(DAMAGED[name].encode("utf-8", "surrogatepass"))
    with pytest.raises(CompileError) as caught:
        load_board("board.toml")
    text = re.sub("one of: corstone.*", "one of: our chips", caught.value.render())
    assert max(map(len, text.splitlines())) < 400
    check_golden(f"toml_{name}", text + "\n")

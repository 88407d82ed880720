"""The simulated path to flash gives its cost on the Picos, which weights in RAM keep small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import baretorch

ZOO = Path(__file__).parents[2] / "zoo"


def ran(model: str, board: str, folder: Path, *more: str) -> dict[str, Any]:
    words = ["run", str(ZOO / f"{model}.py"), "--board", board, "--int8", "--io", "int8", "--out", str(folder / board)]
    result = baretorch(*words, *more, "--json")
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("board", "goal"), [("pico", 20.0), ("pico2w", 3.5)])
def test_weights_that_are_read_once(board: str, goal: float, tmp_path: Path) -> None:
    """zoo/ad reads each of its 278 KB once, which the Pico's RAM does not hold."""
    chosen, flash = (ran("ad", board, tmp_path / where, "--weights", where) for where in ("auto", "flash"))
    assert chosen["time_ms"] <= chosen["time_ms_range"][1] <= goal
    assert chosen["instructions"] == flash["instructions"]
    assert 2 * chosen["time_ms"] < flash["time_ms"]


@pytest.mark.slow
@pytest.mark.parametrize("board", ["pico", "pico2w"])
def test_weights_that_do_not_stay_in_the_cache(board: str, tmp_path: Path) -> None:
    found = ran("kws", board, tmp_path)
    assert found["cycles"] <= 1.05 * found["core_cycles"]

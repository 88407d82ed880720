"""The page that `make bench` writes: figures beside the peers', and an honest word about each goal."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

from tests.zoo.zoo import ROOT

ROW: dict[str, Any] = {
    "model": "sine", "dtype": "float32", "board": "mps2-an386", "toolchain": "gcc", "emulator": "qemu",
    "instructions": 1_440, "macs": 288, "arena_lower_bound": 100, "max_error": 1.5e-7,
    "flash": {"model_code": 1_000, "code": 4_000, "weights": 1_284},
    "ram": {"arena": 128, "model_static": 8, "static": 12, "stack": 120},
}  # fmt: skip


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("page")


def test_a_missed_goal_is_told_with_its_factor(page: ModuleType) -> None:
    text = page.markdown([ROW], ["a compiler"])
    assert "- a compiler\n" in text
    assert "|  | **goal** | 1,200 | 1,500 | 200 |  |\n" in text
    assert "|  | **Baretorch** | 1,440 | 1,000 | 136 | missed: instructions 1.20x |\n" in text
    assert "|  | Baretorch, whole image | – | 4,000 | 140 |  |\n" in text
    assert (
        "| sine float32 | mps2-an386 | gcc | qemu | 1,440 | 5.00 | 1,000 | 4,000 | 1,284 | 128 | 100 | 1.28 | 12 | 120 "
        "| 1.5e-07 |\n" in text
    )
    assert "## Too large" not in text


def test_a_goal_that_is_reached_is_met(page: ModuleType) -> None:
    assert "| 1,200 | 1,000 | 136 | met |" in page.markdown([ROW | {"instructions": 1_200}], [])


def test_what_does_not_fit_is_listed_apart(page: ModuleType) -> None:
    misfit = {"model": "ic", "dtype": "float32", "board": "pico", "toolchain": "gcc", "misfit": "SRAM is too small"}
    assert page.markdown([ROW, misfit], []).endswith("## Too large\n\n- ic float32, gcc: SRAM is too small\n")

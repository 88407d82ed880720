"""The page that `make bench` writes compares figures with those of peers, and lists each missed goal."""

from __future__ import annotations

import importlib
import json
from types import ModuleType
from typing import Any

import pytest

from tests.zoo.zoo import ROOT

ROW: dict[str, Any] = {
    "model": "sine", "dtype": "float32", "board": "mps2-an386", "toolchain": "gcc", "emulator": "qemu",
    "instructions": 1_440, "macs": 288, "arena_lower_bound": 100, "max_error": 1.5e-7,
    "cycles": 2_000, "cycles_range": [1_800, 2_400],
    "flash": {"model_code": 1_000, "code": 4_000, "weights": 1_284},
    "ram": {"arena": 128, "model_static": 8, "static": 12, "stack": 120, "total": 260},
}  # fmt: skip
INT8 = ROW | {"model": "kws", "dtype": "int8", "raw_weights": 1_000, "channels": 50}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("page")


def test_a_missed_goal_is_listed_with_its_gap(page: ModuleType) -> None:
    text = page.markdown([ROW], ["a compiler"])
    assert "- a compiler\n" in text
    assert (
        "| sine | Cortex-M4F | 1,440 | 5.00 | 1,200 | **1.20** | 3,419 | 2.4x | 7,760 | 5.4x | 27,520 | 19.1x |\n"
        in text
    )
    assert "| sine | 1,000 | 1,500 | 0.67 | 4,000 | 31,928 | 54,712 | 136 | 200 | 0.68 | 140 | 1,112 | 1,400 |" in text
    assert "- sine float32 on Cortex-M4F: 1,440 instructions, goal 1,200: 240 too many\n" in text
    assert (
        "| sine float32 | mps2-an386 | gcc | qemu | 1,440 | 5.00 | 2,000 (1,800 to 2,400) | 1,000 | 4,000 | 1,284 "
        "| 128 | 100 | 1.28 | 12 | 120 | 1.5e-07 |\n" in text
    )
    assert "## Too large" not in text and "## int8" not in text


def test_a_goal_that_is_reached_is_met(page: ModuleType) -> None:
    text = page.markdown([ROW | {"instructions": 1_200}], [])
    assert "| 1,200 | 4.17 | 1,200 | 1.00 |" in text
    assert "## Goals that are missed\n\nNone.\n" in text


@pytest.mark.parametrize(("stored", "missed"), [(1_224, False), (1_225, True)])
def test_stored_bytes_of_an_int8_model_have_a_goal(page: ModuleType, stored: int, missed: bool) -> None:
    text = page.markdown([INT8 | {"flash": ROW["flash"] | {"weights": stored}}], [])
    assert ("- kws int8 on Cortex-M4F: 1,225 bytes of weights, goal 1,224: 1 too many\n" in text) == missed


@pytest.mark.parametrize(("stack", "missed"), [(511, False), (512, True)])
def test_the_stack_has_a_goal(page: ModuleType, stack: int, missed: bool) -> None:
    text = page.markdown([ROW | {"instructions": 1, "ram": ROW["ram"] | {"stack": stack}}], [])
    assert ("- sine float32 on Cortex-M4F: 512 bytes of stack, goal below 512\n" in text) == missed


def test_cores_without_a_goal_are_shown_too(page: ModuleType) -> None:
    text = page.markdown([INT8 | {"board": "mps2-an505"}], [])
    assert "| kws | Cortex-M33 | 1,440 | 5.00 | – |  | – |  | – |  |\n" in text


@pytest.mark.parametrize(
    ("cycles", "cells"), [(12_000, "12,000 | 12,000 | 1.00"), (15_000, "15,000 | 12,000 | **1.25**")]
)
def test_an_8_bit_chip_has_goals(page: ModuleType, cycles: int, cells: str) -> None:
    uno = {"board": "arduino-uno", "dtype": "int8", "cycles": cycles, "time_ms": 0.75}
    text = page.markdown([ROW | uno | {"flash": ROW["flash"] | {"total": 5_284}}], [])
    assert f"| sine | arduino-uno | {cells} | 0.75 | 5,284 | 260 | 300 | 0.87 | 1.5e-07 |\n" in text


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("second_goals")


def test_a_second_goal_is_listed_with_gap_and_cause(second: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = second.Goal("sine", "float32", "mps2-an386", "instructions", 1_200, "Too few registers.")
    monkeypatch.setattr(second, "GOALS", (goal,))
    text = second.section([ROW])
    assert "| sine float32 | mps2-an386 | instructions | 1,440 | 1,200 | **1.200** |" in text
    assert "- sine float32 on mps2-an386: 240 instructions (20.0 %) too many. Too few registers." in text
    met = second.section([ROW | {"instructions": 1_200}])
    assert "| sine float32 | mps2-an386 | instructions | 1,200 | 1,200 | 1.000 |" in met
    assert not any("too many" in line for line in met) and second.section([]) == []


def test_every_second_goal_is_measured_and_a_missed_one_has_a_cause(second: ModuleType) -> None:
    rows = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    found = list(second.goals_of([row for row in rows if "instructions" in row and not row.get("cores")]))
    assert [goal for goal, _ in found] == list(second.GOALS)
    assert not [goal for goal, have in found if have > goal.most and not goal.why]


def test_models_that_do_not_fit_are_listed_separately(page: ModuleType) -> None:
    misfit = {"model": "ic", "dtype": "float32", "board": "pico", "toolchain": "gcc", "misfit": "SRAM is too small"}
    assert page.markdown([ROW, misfit], []).endswith("## Too large\n\n- ic float32, gcc: SRAM is too small\n")


@pytest.mark.slow
def test_tinygrads_own_c_takes_more_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tinygrad_c = importlib.import_module("tinygrad_c")
    monkeypatch.setattr(tinygrad_c, "BOARDS", ("mps2-an386",))
    theirs, ours, int8 = tinygrad_c.measure_all()
    assert [row["made_by"] for row in (theirs, ours, int8)] == ["tinygrad", "Baretorch", "Baretorch"]
    assert (int8["dtype"], int8["max_error"] < 0.1) == ("int8", True)
    assert theirs["flash"]["weights"] == ours["flash"]["weights"]
    assert theirs["instructions"] > 3 * ours["instructions"]
    assert "| mps2-an386 | tinygrad | float32 | " in tinygrad_c.section([theirs, ours])

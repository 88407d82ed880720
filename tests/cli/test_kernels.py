"""tune-kernels measures once, and --kernels takes what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baretorch import api
from baretorch.explore import kernel_search
from baretorch.targets.toml import BOARDS
from tests.cli.program import baretorch, check_golden, copy_model

BOARD = ("--board", "mps2-an386")


def test_a_search_and_what_it_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    model = copy_model("tiny", folder)
    first = baretorch("tune-kernels", model, *BOARD, "--json").json()
    assert first["file"] == "tiny.kernels.json"
    assert first["built"] > 1
    assert any(len(choice["tried"]) > 1 for choice in first["choices"])
    assert first["after"]["cycles"] <= first["before"]["cycles"]
    text = (folder / "tiny.kernels.json").read_text()
    again = baretorch("tune-kernels", model, *BOARD, "--json").json()
    assert again["built"] == 0
    assert (folder / "tiny.kernels.json").read_text() == text
    slow = {name: way for c in first["choices"] for name, way in [(c["take"], list(c["tried"])[-1])]}
    for best, worst in slow.items():
        text = text.replace(f'"take": "{best}"', f'"take": "{worst}"')
    (folder / "slow.json").write_text(text)
    ran = baretorch("run", model, *BOARD, "--kernels", "slow.json", "--json").json()
    assert ran["instructions"] > first["after"]["instructions"] and not ran["warnings"]


OWN = "linear float32 1x8 float32 2x8 float32 2 -> float32 1x2 half=False"  # the last layer of the model


@pytest.mark.parametrize(
    ("cpu", "layer", "tried", "told"),
    [
        ("cortex-m4f", OWN, {}, False),
        ("cortex-m4f", OWN.replace("8", "9"), {}, True),
        ("cortex-m33", OWN, {}, True),
        ("cortex-m4f", OWN, {"bt_linear_f32_ref": {"cycles": 1, "instructions": 1}}, True),
    ],
    ids=["own", "another model", "another CPU", "not tried beside the planner's own"],
)
def test_a_file_of_which_nothing_is_taken(
    cpu: str, layer: str, tried: dict[str, Any], told: bool, folder: Path
) -> None:
    row = {"cpu": cpu, "cores": 1, "layer": layer, "take": "bt_linear_f32_ref", "tried": tried}
    (folder / "mine.json").write_text(json.dumps({"format": 1, "choices": [row]}))
    compiled = ("compile", copy_model("tiny", folder), *BOARD, "--kernels", "mine.json", "--out", "c")
    text = "kernels: mine.json says nothing of this model's layers on cortex-m4f with 1 core: it changes nothing"
    assert baretorch(*compiled, "--json").json()["warnings"] == ([text] if told else [])


def test_the_file_may_be_gone_when_warnings_are_asked_for(folder: Path) -> None:
    (folder / "mine.json").write_text('{"format": 1, "choices": []}')
    found = api.compile(copy_model("tiny", folder), board="mps2-an386", kernels="mine.json")
    (folder / "mine.json").unlink()
    assert len(found.warnings) == 1 and "mine.json" in found.warnings[0]


def test_a_chip_whose_file_changed_is_measured_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C is the same, the cycles need not be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "mine.toml").write_text((BOARDS / "cluster8.toml").read_text().replace('"cluster8"', '"mychip"'))
    chip = (BOARDS / "chips" / "cluster8.toml").read_text()
    search = ("tune-kernels", copy_model("tiny", folder), "--board", "mine.toml", "--cores", "1", "--json")
    built = []
    for cycles in ("10", "10", "90"):
        (folder / "mychip.toml").write_text(chip.replace("slow_cycles = 10", f"slow_cycles = {cycles}"))
        built.append(baretorch(*search).json()["built"])
    assert built == [built[0], 0, built[0]] and built[0] > 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernels_of_others", "hello"),
        (
            "kernels_that_are_gone",
            '{"format": 1, "choices": [{"cpu": "x", "cores": 1, "layer": "", "take": "bt_warp", "tried": {}}]}',
        ),
    ],
)
def test_files_that_are_none(name: str, text: str, folder: Path) -> None:
    (folder / "mine.json").write_text(text)
    result = baretorch("compile", copy_model("tiny", folder), *BOARD, "--kernels", "mine.json", "--out", "c")
    assert (result.code, result.out) == (1, "")
    check_golden(f"error_{name}", result.err)


def test_a_file_that_is_not_there(folder: Path) -> None:
    result = baretorch("compile", copy_model("tiny", folder), *BOARD, "--kernels", "nowhere.json", "--out", "c")
    assert result.code == 1
    check_golden("error_kernels_nowhere", result.err)


def test_a_file_of_others_stays(folder: Path) -> None:
    (folder / "tiny.kernels.json").write_text("mine")
    result = baretorch("tune-kernels", copy_model("tiny", folder), *BOARD)
    assert result.code == 1
    check_golden("error_kernels_not_ours", result.err)


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("no/such.json", "error: cannot write no/such.json\n  have  no folder no\n  try   another place with --out\n"),
        (
            "ours.json",
            "error: ours.json: no file of kernels\n  have  choice 1: 7 is no table\n"
            "  need  what `baretorch tune-kernels MODEL --board BOARD` writes\n"
            "  try   another place with --out, or remove it\n",
        ),
    ],
)
def test_a_place_that_cannot_be_is_told_before_the_search(
    out: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_search, "search", None)
    (folder / "ours.json").write_text('{"about": "Made by Baretorch tune-kernels", "format": 1, "choices": [7]}')
    result = baretorch("tune-kernels", copy_model("tiny", folder), *BOARD, "--out", out)
    assert (result.code, result.err) == (1, told)

"""`run --compare-cores` and `profile` report on models that use several cores, and how long the tool took."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import baretorch, copy_model


def check_seconds(seconds: dict[str, float]) -> None:
    """No time is counted twice: the stages and what is between them are the total."""
    *parts, total = seconds.values()
    assert list(seconds)[-2:] == ["other", "total"]
    assert all(part > -0.01 for part in parts)
    assert sum(parts) == pytest.approx(total)


def test_a_cluster_is_compared_with_one_core_when_asked(folder: Path) -> None:
    command = ("run", copy_model("judged", folder), "--board", "cluster8", "--int8", "--json")
    plain, compared = (baretorch(*command, *more).json() for more in ([], ["--compare-cores"]))
    assert not {"speedup", "one_core"} & set(plain["cores"])
    assert "one_core" not in plain["tool_seconds"] and "one_core" in compared["tool_seconds"]
    cores = compared["cores"]
    assert cores["speedup"] == round(cores["one_core"]["cycles"] / cores["critical_path"], 3)
    assert plain["cores"] == {name: value for name, value in cores.items() if name not in ("speedup", "one_core")}
    for data in (plain, compared):
        check_seconds(data["tool_seconds"])


def test_the_screen_has_a_speed_up_when_asked(folder: Path) -> None:
    command = ("run", copy_model("tiny", folder), "--board", "pico2w", "--cores", "2")
    plain, compared = (baretorch(*command, *more) for more in ([], ["--compare-cores"]))
    assert plain.code == compared.code == 0
    assert "core 1" in plain.out and "speed-up" not in plain.out
    assert "speed-up" in compared.out and "over one core" in compared.out


def test_a_profile_of_a_cluster_has_it_always(folder: Path) -> None:
    command = ("profile", copy_model("tiny", folder), "--board", "cluster8")
    data, alone = baretorch(*command, "--json").json(), baretorch(*command, "--cores", "1", "--json").json()
    assert data["one_core"]["cycles"] == alone["cycles"]
    assert data["speedup"] == round(alone["cycles"] / data["cycles"], 3)
    assert not {"speedup", "one_core"} & set(alone)
    assert f"speed-up {alone['cycles'] / data['cycles']:.2f} over one core" in baretorch(*command).out


def test_one_core_cannot_be_compared(folder: Path) -> None:
    result = baretorch("run", copy_model("tiny", folder), "--board", "pico2w", "--compare-cores")
    assert result.code == 2
    assert "--compare-cores needs a model on several cores: --cores 2, or a cluster" in result.err

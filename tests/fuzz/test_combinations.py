"""Combinations of options, boards and models: 60 rows of a covering array in `make test`, 600 in `make test-all`.

Each row is compiled, built and run on its emulated board. In int8 it must give the bits that `host` and the interpreter
give; in float it must agree with PyTorch. A row that Baretorch rejects is repaired, so that each one runs."""

from __future__ import annotations

from functools import cache
from itertools import combinations, islice
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.options import OPTIONS
from tests.fuzz import combinations as c
from tests.fuzz.covering import Row, pairs, repaired, rows

EACH = 6  # rows of a test, which share what they export and quantize
QUICK, ALL = 60, 600


@cache
def array(count: int) -> list[Row]:
    return list(islice(rows(c.FACTORS, lambda row: c.impossible(row) is None), count))


@pytest.mark.parametrize(
    "first", [n if n < QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(0, ALL, EACH)]
)
def test_option_combinations(first: int, tmp_path: Path) -> None:
    for number, row in enumerate(array(first + EACH)[first:], first):
        folder = tmp_path / str(number)
        row = repaired(row, c.DEFAULTS, lambda row, folder=folder: c.rejects(row, folder / "try"), c.REPAIRS)
        try:
            c.check(row, c.build(row, folder / "image"), folder)
        except Exception as error:
            shown = {name: level for name, level in row.items() if level != c.DEFAULTS[name]}
            pytest.fail(f"row {number}, {shown}: {type(error).__name__}: {error}")


def test_every_option_is_varied_or_listed_with_a_reason() -> None:
    assert {*c.FACTORS} - {"board", "model", "two", "precision"} | {*c.NOT_VARIED} == {*OPTIONS}
    assert not {*c.FACTORS} & {*c.NOT_VARIED}
    assert sorted(c.REPAIRS) == sorted(c.FACTORS)


def test_the_first_rows_have_every_level() -> None:
    """The 60 rows of `make test` exercise each board, model, precision and option."""
    found = {(name, level) for row in array(QUICK) for name, level in row.items()}
    assert {(name, level) for name, levels in c.FACTORS.items() for level in levels} == found


def test_the_whole_array_covers_every_possible_pair() -> None:
    covered = set().union(*(pairs(row) for row in array(ALL)))
    missed = {
        (a, x, b, y)
        for a, b in combinations(sorted(c.FACTORS), 2)
        for x in c.FACTORS[a]
        for y in c.FACTORS[b]
        if (a, x, b, y) not in covered and c.impossible({a: x, b: y}) is None
    }
    assert all(_never({a: x, b: y}) for a, x, b, y in missed), missed


def _never(pair: Row) -> bool:
    """Return whether some third factor permits the pair with none of its levels."""
    return any(
        all(c.impossible({**pair, name: level}) is not None for level in levels)
        for name, levels in c.FACTORS.items()
        if name not in pair
    )


@pytest.mark.parametrize(
    "row, board",
    [
        ({"core": "1"}, "mps2-an386"),
        ({"cores": "2"}, "mps2-an386"),
        ({"core": "1", "cores": "2"}, "pico"),
        ({"core": "1"}, "cluster8"),
        ({"weights": "stream"}, "pico"),
        ({"weights": "ram"}, "mps2-an386"),
        ({"code": "ram"}, "mps2-an386"),
        ({"watchdog": "2000"}, "mps2-an386"),
        ({"toolchain": "zig"}, "arduino-mega"),
        ({"input": "rows"}, "pico"),
        ({"model": "tokens", "check_inputs": "yes"}, "pico"),
        ({"model": "image", "input": "rows", "check_inputs": "yes"}, "pico"),
        ({"precision": "int8", "io": "int8", "check_inputs": "yes"}, "pico"),
        ({"precision": "float", "observer": "minmax"}, "pico"),
        ({"model": "methods", "precision": "int8"}, "pico"),
        ({"model": "signal", "precision": "int4g32"}, "pico"),
    ],
)
def test_baretorch_rejects_what_the_table_calls_impossible(row: Row, board: str, tmp_path: Path) -> None:
    full = {**c.DEFAULTS, "precision": "float", "board": board, **row}
    assert c.impossible(full)
    if row.get("model") == "signal":  # no layer of it takes such weights, so the configuration names one
        (tmp_path / "layers.toml").write_text('[layers]\n"a" = "int4g32"\n')
        with pytest.raises(CompileError):
            c.quantize_by(full, tmp_path / "layers.toml")
        return
    with pytest.raises(CompileError):
        c.build(full, tmp_path)


def test_a_row_is_repaired_as_little_as_possible() -> None:
    """Only what is rejected goes back to its default; several factors do where no single one suffices."""
    defaults = dict.fromkeys("abcd", "0")
    row = {"a": "1", "b": "1", "c": "1", "d": "1"}

    def together(row: Row) -> str | None:
        return "b and c exclude each other" if row["b"] == row["c"] == "1" else None

    assert repaired(row, defaults, together, list("abcd")) == {**row, "b": "0"}

    def two(row: Row) -> str | None:
        return "neither a nor c" if row["a"] == "1" or row["c"] == "1" else None

    assert repaired(row, defaults, two, list("abcd")) == {**row, "a": "0", "c": "0"}
    with pytest.raises(ValueError, match="the defaults are rejected"):
        repaired(row, defaults, lambda row: "never", list("abcd"))


def test_a_wrong_image_is_noticed(tmp_path: Path) -> None:
    """The comparison can fail: an image of other weights is not accepted as the row's own."""
    row = {**c.DEFAULTS, "precision": "int8", "board": "host"}
    right = c.build(row, tmp_path / "right")
    c.check(row, right, tmp_path)
    other = c.build({**row, "precision": "int4"}, tmp_path / "other")
    with pytest.raises(c.Wrong):
        c.check(row, c.Built(right.models, other.image), tmp_path)

"""The teaching pages: pictures and tables are what the tools compute, and every exercise has a solution that is run.

tests/test_docs.py runs the programs, because each of them is a block with output on a page.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from baretorch.cli import run_command
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "teach"
TEACH = ROOT / "examples" / "teach"


def tools(path: Path) -> SimpleNamespace:
    """Return the names that a program defines."""
    return SimpleNamespace(**runpy.run_path(str(path)))


PIECES = tools(TEACH / "pieces.py")


def output(name: str, *arguments: str) -> str:
    """Return what a program of examples/teach/ prints."""
    given, sys.argv = sys.argv, [name, *arguments]
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(str(TEACH / name), run_name="__main__")
    finally:
        sys.argv = given
    return out.getvalue()


def plan() -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run_command(["inspect", str(TEACH / "cnn.py"), "--json"])
    found: dict[str, Any] = json.loads(out.getvalue())["plan"]
    return found


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its title and rule."""
    text = (PAGES / page).read_text().partition(heading)[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def random_weights(seed: int, first: int, second: int) -> Any:
    rng = np.random.default_rng(seed)
    shapes = ((first, 1), (first,), (second, first), (second,), (1, second), (1,))
    weights = [rng.normal(size=shape) for shape in shapes]
    weights[1] -= weights[0][:, 0] * np.pi  # kinks of the first layer around the middle
    return PIECES.Weights(*weights)


@pytest.mark.parametrize("seed", range(20))
def test_between_kinks_a_network_is_straight(seed: int) -> None:
    w = random_weights(seed, 6, 5)
    first, second = PIECES.first_kinks(w), PIECES.second_kinks(w)
    assert len(first) <= 6 and len(second) <= 5 * (len(first) + 1)
    ends = np.concatenate([[0], np.sort([*first, *second]), [2 * np.pi]])
    x = np.linspace(0, 2 * np.pi, 5001)
    assert np.abs(np.interp(x, ends, w.output(x=ends)) - w.output(x)).max() < 1e-12


def test_without_a_kink_it_is_not_straight() -> None:
    """The comparison above is able to fail: each kink matters."""
    w = random_weights(3, 6, 5)
    kinks = np.sort([*PIECES.first_kinks(w), *PIECES.second_kinks(w)])
    assert len(kinks) > 3
    x = np.linspace(0, 2 * np.pi, 5001)
    for missing in range(len(kinks)):
        ends = np.concatenate([[0], np.delete(kinks, missing), [2 * np.pi]])
        assert np.abs(np.interp(x, ends, w.output(ends)) - w.output(x)).max() > 1e-6


def test_kinks_that_are_known() -> None:
    """relu(x - 1) and relu(2 - x) have kinks at 1 and 2; the second layer subtracts 1/2 from their sum."""
    column = np.array([[1.0], [-1.0]])
    w = PIECES.Weights(column, np.array([-1.0, 2.0]), np.ones((1, 2)), np.array([-1.5]), np.ones((1, 1)), np.zeros(1))
    assert PIECES.first_kinks(w).tolist() == [1, 2]
    assert PIECES.second_kinks(w).tolist() == [0.5, 2.5]


def test_pieces_are_drawn(tmp_path: Path) -> None:
    PIECES.draw(random_weights(0, 4, 4), np.array([1.0]), np.array([2.0]), tmp_path / "new" / "p.png")
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")
    assert (PAGES / "pieces.png").read_bytes().startswith(b"\x89PNG")


def test_the_drawing_of_the_path_is_fresh() -> None:
    draw = tools(ROOT / "tools" / "draw_path.py")
    drawn = draw.picture(draw.inspected())
    assert drawn == (PAGES / "path.svg").read_text("utf-8"), "run `python tools/draw_path.py`"
    svg = ElementTree.fromstring(drawn)
    assert "href" not in drawn and "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    background = svg.find("{http://www.w3.org/2000/svg}rect")
    assert background is not None
    assert (background.get("width"), background.get("height")) == (svg.get("width"), svg.get("height"))


def test_every_exercise_has_a_solution_that_is_run() -> None:
    page = (PAGES / "exercises.md").read_text()
    numbers = [int(n) for n in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)]
    assert numbers == list(range(1, 11))
    files = sorted(path.name for path in (TEACH / "solutions").glob("*.py"))
    assert files == [f"exercise_{n:02}.py" for n in numbers]
    for n, text in zip(numbers, re.split(r"^## ", page, flags=re.MULTILINE)[1:], strict=True):
        name = f"exercise_{n:02}.py"
        assert f"[Solution](../../examples/teach/solutions/{name})" in text
        assert re.search(rf"^<!-- output(, slow)? -->\n```console\n\$ python \S+/{name}\n\S", text, re.MULTILINE)
        assert "assert " in (TEACH / "solutions" / name).read_text()


def test_the_worksheet_has_the_values_of_the_plan() -> None:
    """The tables of the tool's values, and the sums that are computed from them."""
    found = plan()
    buffers = found["buffers"]
    listed = rows("memory-plan.md", "## The tool's values")
    for buffer, (name, size, written, read) in zip(buffers, listed, strict=True):
        assert buffer["name"].partition("_")[0] == name.split()[0]
        steps = ("before 0" if buffer["first"] < 0 else str(buffer["first"]), str(buffer["last"]))
        assert (buffer["size"], *steps) == (number(size), written, read.replace("after 5", "6"))
    sums = (PAGES / "memory-plan.md").read_text().partition("| step | in use without sharing")[2].splitlines()[2:8]
    alone, shared = [], []
    for step, line in enumerate(sums):
        used = [b for b in buffers if b["first"] <= step <= b["last"]]
        places = {at for b in used for at in range(b["offset"], b["offset"] + b["size"])}
        cells = [number(cell) for cell in line.strip("|").split("|")[1:]]
        assert cells == [sum(b["size"] for b in used), len(places)], line
        alone.append(cells[0])
        shared.append(cells[1])
    text = (PAGES / "memory-plan.md").read_text()
    assert f"All tensors together: {sum(b['size'] for b in buffers):,} bytes" in text
    assert f"Reuse of dead tensors: {max(alone):,} bytes. Sharing: {max(shared):,} bytes" in text
    assert max(shared) == found["arena"] == found["lower_bound"]


def test_the_facts_about_flash_are_those_of_the_chip() -> None:
    path = load_board("pico2w").chip.flash_path
    assert path is not None
    values = [row[1] for row in rows("flash.md", "## The cache")]
    (cache,) = path.caches
    assert values == [
        f"{cache.size // 1024} KiB, {cache.ways} ways",
        f"{path.fills[0]} bytes",
        f"{path.fill_cycles} cycles",
        f"{path.next_cycles} cycles",
    ]
    weights = 784 * 400 + 400 * 10
    misses = weights // path.fills[0]
    took = misses * path.next_cycles / load_board("pico2w").chip.clock_hz * 1e3
    text = " ".join((PAGES / "flash.md").read_text().split())
    assert f"{weights:,} weights in pieces of 8 bytes are {misses:,} misses" in text
    assert f"150 MHz that is {took:.1f} ms" in text


@pytest.mark.parametrize("name", ["sine.pte", "sine_xnnpack.pte"])
def test_segments_are_within_the_file(name: str) -> None:
    size = (TEACH / name).stat().st_size
    text = output("anatomy.py", str(TEACH / name))
    assert text.startswith(f"{name}: {size:,} bytes")
    (header,) = re.findall(r"program ([\d,]+) bytes, segments from byte ([\d,]+)", text)
    segments = re.findall(r"^segment \d +([\d,]+) bytes at ([\d,]+)$", text, re.MULTILINE)
    assert number(header[0]) <= number(header[1]) <= min(number(at) for _, at in segments)
    assert max(number(at) + number(n) for n, at in segments) == size


def test_sections_are_in_the_banks_of_the_board() -> None:
    text = output("sections.py", str(TEACH / "cnn.py"), "host")
    assert text.splitlines()[0].split() == ["section", "address", "bytes", "bank", "holds"]
    text = output("sections.py", str(TEACH / "cnn.py"), "pico2w", "weights=flash")
    found = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}
    assert found[".weights"][2:] == ["FLASH", "constants"] and found[".weights"][1] == "956"
    assert found[".text"][2:] == ["FLASH", "code"] and found[".arena"][2:] == ["SRAM", "variables"]
    moved = output("sections.py", str(TEACH / "cnn.py"), "pico2w", "weights=ram", "code=ram")
    assert re.search(r"^\S+ +0x20\S+ +956 ", moved, re.MULTILINE), moved


def test_the_sets_of_hands_are_as_the_page_says() -> None:
    page = " ".join((ROOT / "examples/rps/README.md").read_text().split())
    model = (ROOT / "examples/rps/model.py").read_text()
    train, held, calibrate = (
        3 * int(re.search(pattern, model)[1])  # type: ignore[index]
        for pattern in (r"count: int = (\d+)", r"pictures\((\d+), HELD_OUT\)\n    right", r"pictures\((\d+), CALIB")
    )
    assert f"{train:,} pictures for training, {held} held-out ones, and {calibrate} for calibration" in page


@pytest.mark.parametrize("page", ["export.md", "memory-plan.md"])
def test_quoted_code_is_that_of_the_examples(page: str) -> None:
    source = "\n".join(re.sub(r"^    ", "", p.read_text(), flags=re.MULTILINE) for p in TEACH.rglob("*.py"))
    quoted = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert quoted and all(text in source for text in quoted)

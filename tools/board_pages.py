"""Write the pages of docs/boards from the boards' TOML files and benchmarks/boards.json."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from markdown_tables import table

from baretorch.measure.numbers import capacity, figure, frequency
from baretorch.options import Console
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benchmarks" / "boards.json"
SINE = "examples/sine/model.py"
COUNT_CYCLES = ("simavr", "cluster")  # other emulators count instructions

NEVER = "No image of Baretorch has been tried on this board yet. If you try one, please report the result."
TEXTS = tomllib.loads((ROOT / "tools/board_pages.toml").read_text())
USB = TEXTS.pop("usb")


def index_page(note: str) -> str:
    rows = [(f"[`{b.name}`]({b.name}.md)", b.title, b.chip.cpus, _runs_on(b)) for b in map(load_board, board_names())]
    text = [
        note,
        "# Board by board",
        "",
        "Each board has a page with wiring, flashing, console, the figures of three models, what was verified,",
        "and first steps. [The reference](../reference/boards.md) has all memory maps in one table. No image has been",
        "tried on a physical board yet: if you have one, you can be the first.",
        "",
        *table(("board", "what it is", "CPU", "emulated by"), rows),
    ]
    return "\n".join(text) + "\n"


def board_page(name: str, note: str) -> str:
    board = load_board(name)
    page = board.page
    assert page is not None, f"{name}.toml has no [page]"
    words = {"board": name, "sine": SINE}
    shared = words | {key: text.format_map(words) for key, text in TEXTS.items()}

    def fill(*texts: str) -> list[str]:
        return [text.format_map(shared) for text in texts]

    wiring, flashing, console, first, verified = page.wiring, page.flashing, page.console, page.first, page.verified
    if board.chip.usb is not None:
        if board.console is Console.USB:
            wiring = f"{USB['wiring']}\n{wiring}"
            flashing = f"{flashing}\n{USB['flashing']}"
            console = USB["console"]
            first = (*USB["first"], *first[1:])
        else:
            console = f"{console}\n{USB['if_requested']}"
        how = USB["verified"] + (USB["verified_js"] if "rp2040js" in board.emulators else "")
        verified = (*verified[:-1], ("USB", how), verified[-1])

    real = bool(board.flash_methods)
    text = [
        note,
        f"# {board.title}",
        "",
        f"`--board {name}`: {board.chip.cpus} at {frequency(board.chip.clock_hz)}, chip `{board.chip.name}`.",
        f"{board.notes[0].upper()}{board.notes[1:]}.",
        *(["", NEVER] if real else []),
        "",
        "## Wiring",
        "",
        *fill(wiring),
        "",
        "## Flashing",
        "",
        *fill(flashing),
        "",
        "## Console",
        "",
        *fill(console),
        "",
        "## Memory",
        "",
        *_memory(board),
        "",
        *_pins(board),
        "## Three models",
        "",
        *_figures(board),
        "",
        "## What was verified, and how",
        "",
        *table(("what", "how"), [tuple(fill(*row)) for row in verified]),
        "",
        "## What to try first",
        "",
        *(f"{n}. {_sentence(line)}" for n, line in enumerate(fill(*first), 1)),
    ]
    return "\n".join(text) + "\n"


def _sentence(text: str) -> str:
    return text if text[0] == "`" else text[0].upper() + text[1:]


def _runs_on(board: Board) -> str:
    return ", ".join(board.emulators) or "nothing: it can only be built"


def _memory(board: Board) -> list[str]:
    chip = board.chip
    if board.hosted:
        return ["The memory of this computer."]
    holds = {chip.code: "the image", chip.data: "data, arena, stack"}
    rows = [
        (m.name, m.kind, f"`0x{m.origin:08x}`", capacity(m.size), holds.get(m.name, "weights and arena, on request"))
        for m in chip.memories
    ]
    slow = [f"{m.name} is {m.slow}." for m in chip.memories if m.slow]
    return [*table(("bank", "kind", "origin", "size", "holds"), rows, "lllrl"), *(["", *slow] if slow else [])]


def _pins(board: Board) -> list[str]:
    if not board.pins:
        return []
    rows = [(part, name, f"GP{pin}", f"`BT_PIN_{part}_{name}`".upper()) for part, name, pin in board.pins]
    return ["## Pins", "", *table(("part", "for", "pin", "in C"), rows), ""]


def _figures(board: Board) -> list[str]:
    if board.hosted:
        return ["Nothing is counted on this computer."]
    found = [row for row in json.loads(FIGURES.read_text()) if row["board"] == board.name]
    if not found:
        return ["Not measured yet; `make bench` measures them."]
    how = (
        "In int8, built by gcc, run by `baretorch run MODEL --board {} --int8 --io int8`; `make bench` repeats it."
        if board.emulators
        else "In int8, built by gcc. There is no emulator for this board, so there are sizes only."
    )
    ranges = [row["time_ms_range"] for row in found if row.get("time_ms_range")]
    if any(row.get("emulator") in COUNT_CYCLES for row in found):
        times = ["Times follow from the cycles that the emulator counts, which are the chip's."]
    else:
        span = "with their range" if any(low < high for low, high in ranges) else "from Arm's table, which has no range"
        times = [f"Times are [estimates](../how-to/find-what-is-slow.md#how-far-to-trust-the-time) {span}."]
        times = times if ranges else []
    if board.chip.npu and board.emulators:
        times = ["Instructions are those of the core, without the NPU's work; there is no time for an inference."]
    titles = ("model", "flash", "RAM", "instructions", "time in ms", "of that waiting for flash")
    return [*table(titles, [_row(row) for row in found], "lrrrrr"), "", how.format(board.name), *times]


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    if "misfit" in row:
        return row["model"], "–", "–", "–", f"does not fit: {row['misfit'].rpartition(': ')[2]}", "–"
    sizes = (row["model"], f"{row['flash']:,}", f"{row['ram']:,}")
    if row.get("instructions") is None:
        return *sizes, "–", "–", "–"
    if row["time_ms_range"] is None:
        return *sizes, f"{row['instructions']:,}", "–", "–"
    low, high = map(figure, row["time_ms_range"])
    time = figure(row["time_ms"]) if low == high else f"{figure(row['time_ms'])} ({low} to {high})"
    waits = row.get("flash_cycles")
    flash = "–" if waits is None else figure(1e3 * waits / row["clock_hz"])
    return *sizes, f"{row['instructions']:,}", time, flash

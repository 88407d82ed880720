"""Draw docs/teach/path.svg: the path of the sine model from Python to silicon, with figures from `baretorch inspect`.

`python tools/draw_path.py` writes the picture. It has a background of its own, so that it can be read on light and dark
pages.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from baretorch.cli import run_command
from baretorch.measure.numbers import capacity, frequency
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "teach" / "path.svg"
MODEL, BOARD = "examples/sine/model.py", "pico2w"
WIDTH, HEIGHT = 960, 640
INK, SOFT, PAPER, LINE = "#1b1f24", "#4b5563", "#ffffff", "#64748b"
HOST, FILES, CHIP = "#dbeafe", "#fef3c7", "#dcfce7"
STEP, BOX = (176, 20), (160, 118)  # a box and the distance to the next


def inspected() -> dict[str, Any]:
    """Return what `baretorch inspect` reports about the model on the board."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(ROOT):
        run_command(["inspect", MODEL, "--board", BOARD, "--json"])
    data: dict[str, Any] = json.loads(out.getvalue())
    return data


def box(x: int, y: int, width: int, height: int, fill: str, title: str, lines: list[str], code: str = "") -> list[str]:
    """Return a box with a title, lines of text and a command."""
    drawn = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{LINE}"/>']
    drawn.append(text(x + 12, y + 24, title, INK, 15, "bold"))
    drawn += [text(x + 12, y + 45 + 18 * i, line, INK, 12.5) for i, line in enumerate(lines)]
    if code:
        drawn.append(text(x + 12, y + height - 11, code, SOFT, 11, family="monospace"))
    return drawn


def text(x: float, y: float, words: str, fill: str, size: float, weight: str = "normal", family: str = "") -> str:
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    given = f' font-family="{family}"' if family else ""
    return f'<text x="{x}" y="{y}" fill="{fill}" font-size="{size}" font-weight="{weight}"{given}>{words}</text>'


def arrow(*corners: int) -> str:
    """Return an arrow through the corners, given as x and y in turn."""
    path = "L".join(f"{x} {y}" for x, y in zip(corners[::2], corners[1::2], strict=True))
    return f'<path d="M{path}" stroke="{LINE}" stroke-width="2" fill="none" marker-end="url(#head)"/>'


def picture(data: dict[str, Any]) -> str:
    stages, plan, chip = data["stages"], data["plan"], load_board(BOARD).chip
    flash, ram = chip.memory(chip.code), chip.memory(chip.data)
    kernel = data["operators"][0]["kernel"]
    path = [
        (HOST, "1  PyTorch", ["nn.Module", f"{data['parameters']} parameters", "float32"], "model.py"),
        (HOST, "2  Export", [f"{stages['source']} ATen calls", "no Python left"], "--stage aten"),
        (HOST, "3  Passes", [f"{stages['graph']} nodes become {stages['passes']}", "ReLU is a limit"], "--stage graph"),
        (HOST, "4  Plan", [f"{stages['steps']} kernel calls", f"arena {plan['arena']} bytes"], "--stage plan"),
        (FILES, "5  C", ["model.c", "weights.c", f"{kernel}"[:18]], "compile"),
    ]
    parts = []
    for i, (fill, title, lines, code) in enumerate(path):
        x, y = 40 + STEP[0] * i, 76
        parts += box(x, y, *BOX, fill, title, lines, code)
        if i:
            parts.append(arrow(x - STEP[0] + BOX[0] + 1, y + 60, x - 3, y + 60))
    parts += box(
        40,
        250,
        200,
        120,
        FILES,
        "6  Image",
        ["ELF for tools, UF2 for USB", "vector table, IMAGE_DEF", "code, weights"],
        "build",
    )
    parts += [arrow(824, 195, 824, 222, 140, 222, 140, 246), arrow(241, 310, 317, 310)]
    parts.append(text(252, 300, "flash", SOFT, 12))
    parts.append(f'<rect x="320" y="250" width="600" height="340" rx="12" fill="{CHIP}" stroke="{LINE}"/>')
    parts.append(
        text(336, 276, f"7  Silicon: a board with an {chip.name} at {frequency(chip.clock_hz)}", INK, 15, "bold")
    )
    weights = ["model code, start-up code", f"weights {plan['weights']:,} bytes", "a chip of its own, on a serial bus"]
    parts += box(
        340, 296, 250, 122, PAPER, f"{flash.name}  {capacity(flash.size)}", weights, f"from {flash.origin:#010x}"
    )
    parts += box(
        650,
        296,
        250,
        122,
        PAPER,
        f"{ram.name}  {capacity(ram.size)}",
        [f"arena {plan['arena']} bytes", "variables", "stack, grows downwards"],
        f"from {ram.origin:#010x}",
    )
    parts += box(340, 470, 250, 96, PAPER, "Cache (XIP)", ["code runs in place;", "a miss reads the serial flash"])
    parts += box(650, 470, 250, 96, PAPER, "Core", [chip.cpu.name, "runs one kernel after the other"])
    parts += [
        arrow(465, 419, 465, 466),
        arrow(591, 518, 646, 518),
        arrow(762, 419, 762, 466),
        arrow(788, 469, 788, 422),
    ]
    parts.append(text(40, 34, "From Python to silicon: the sine model on a Raspberry Pi Pico 2 W", INK, 19, "bold"))
    parts.append(text(40, 58, "Blue: in the memory of your computer. Yellow: files. Green: the chip.", SOFT, 13))
    parts.append(text(40, 410, "Steps 1 to 6 run once,", SOFT, 13))
    parts.append(text(40, 428, "on your computer.", SOFT, 13))
    parts.append(text(40, 458, "Step 7 runs for each input,", SOFT, 13))
    parts.append(text(40, 476, "without Python and malloc.", SOFT, 13))
    title = "Seven steps from a PyTorch module to a running chip"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img" aria-label="{title}" font-family="system-ui, sans-serif">',
            f"<title>{title}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="14" fill="#f8fafc" stroke="{LINE}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def main() -> None:
    PICTURE.write_text(picture(inspected()), "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

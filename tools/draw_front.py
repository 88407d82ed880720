"""Draw the plot of a page of `baretorch tune` as a PNG, with a headless Chromium.

The picture and the figures of docs/how-to/tune.md are those of the search for words:

baretorch tune examples/words/model.py --board pico --accuracy-drop 1 --trials 24
python tools/draw_front.py build/words-pico-tuned/tuned.html docs/how-to/tune.png
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from draw_pictures import screenshot

EDGE = 20  # pixels around the plot
PLAIN = (
    f":root {{ color-scheme: light }} body {{ margin: {EDGE}px; max-width: none; padding: 0 }} svg {{ display: block }}"
)


def plot_of(page: str) -> tuple[str, int, int]:
    """Return a page that shows only the plot of a page of `tune`, and its size."""
    style, plot = (re.search(rf"<{tag}\b.*?</{tag}>", page, re.DOTALL) for tag in ("style", "svg"))
    size = re.search(r'<svg [^>]*width="(\d+)" height="(\d+)"', page)
    if style is None or plot is None or size is None:
        sys.exit("this is no page of `baretorch tune`: it has no plot")
    text = f'<!doctype html><meta charset="utf-8">{style[0]}<style>{PLAIN}</style>{plot[0]}'
    return text, int(size[1]) + 2 * EDGE, int(size[2]) + 2 * EDGE


def draw(page: Path, picture: Path) -> None:
    text, width, height = plot_of(page.read_text("utf-8"))
    screenshot(text, width, height, picture)
    print(f"{picture}: {width} x {height}, {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/draw_front.py build/MODEL-BOARD-tuned/tuned.html PICTURE.png")
    draw(Path(sys.argv[1]), Path(sys.argv[2]))

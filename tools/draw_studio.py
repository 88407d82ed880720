"""Draw docs/how-to/studio.png, the studio's page after a 3 was drawn: PYTHONPATH=. python tools/draw_studio.py"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.report.browser import opened
from tests.studio.client import live, served
from tests.studio.test_page import SETTLED, read

from baretorch.options import Options
from baretorch.studio.digits import MODEL

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 1160


def draw(picture: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = live(MODEL, Path(folder) / "digits", "pico", options=Options(int8=True))
        with served(("digits", model)) as server, opened(server.url, Path(folder) / "profile", width=WIDTH) as page:
            page.until(SETTLED, 60)
            if (answer := read(page, 3)) != "3":
                sys.exit(f"the chip reads {answer} instead of 3")
            page.screenshot(picture)
    Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)


if __name__ == "__main__":
    draw(ROOT / "docs" / "how-to" / "studio.png")

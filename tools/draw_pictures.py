"""Draw the pictures of the docs: `make pictures`. It takes minutes, and needs Chromium for the PNG files.

Each picture is drawn from what a command of Baretorch prints or writes. Three pictures are drawn elsewhere:
docs/how-to/studio.png by tools/draw_studio.py, docs/how-to/tune.png by tools/draw_front.py, and the Pico4ML's by
`make demo-mnist`.
"""

from __future__ import annotations

import html
import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from make_docs import output_of
from PIL import Image, ImageChops
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from baretorch.cli import run_command

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
REPORTS = ROOT / "build" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
EDGE = 16  # pixels around what a section of a report shows

# The terminal: a picture, and the command whose output it shows.
RECORDING = ("run.svg", "$ baretorch run examples/mnist/model.py --board pico2w --int8")
# A name for each page of `baretorch report`, and its arguments.
PAGES = {
    "kws": ("zoo/kws.py", "--board", "pico2w", "--int8"),
    "kws-cluster": ("zoo/kws.py", "--board", "cluster8", "--int8", "--io", "int8"),
}
# A picture, the page that it shows, its section ("" for the top of the page), and its width in pixels.
SECTIONS = (
    ("report.png", "kws", "", 1180),
    ("memory-plan.png", "kws", "lifetimes", 1080),
    ("cluster-timeline.png", "kws-cluster", "timeline", 1180),
)
# The pipeline: what each stage makes, in the order of the data.
STAGES = (
    ("read", "PyTorch, .pt2, .pte, .onnx,", ".tflite, tinygrad"),
    ("passes", "folded, fused, quantized,", "channels last"),
    ("plan", "a kernel for each node,", "an address for each tensor"),
    ("emit", "C to read:", "model.c, model.h, weights.c"),
    ("build", "gcc or Zig's clang:", "ELF, UF2, HEX, BIN"),
    ("emulate", "the image runs on the", "emulated chip"),
)


def pipeline() -> str:
    """Return a drawing of the stages, two in a row, and of the comparison at their end."""
    wide, high, gap, edge = 250, 88, 36, 16
    right, width = edge + wide + gap, 2 * (edge + wide) + gap
    parts = []
    for number, (name, first, second) in enumerate(STAGES):
        x, y = (edge, right)[number % 2], edge + number // 2 * (high + gap)
        parts.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="8" class="box"/>')
        lines = ((name, 28, "name"), (first, 52, "note"), (second, 72, "note"))
        parts += [f'<text x="{x + 16}" y="{y + dy}" class="{kind}">{html.escape(t)}</text>' for t, dy, kind in lines]
        below, middle = y + high, x + wide / 2
        if x == edge:
            parts.append(arrow(f"M{x + wide} {y + high / 2}H{right}"))
        elif number < len(STAGES) - 1:
            parts.append(arrow(f"M{middle} {below}v{gap / 2}H{edge + wide / 2}v{gap / 2}"))
        else:
            parts.append(arrow(f"M{middle} {below}v{gap}"))
    top = edge + 3 * (high + gap)
    parts.append(f'<rect x="{edge}" y="{top}" width="{width - 2 * edge}" height="68" rx="8" class="last"/>')
    first, second = "the chip's results with the original model's;", "report flash, RAM, instructions and time"
    parts.append(f'<text x="32" y="{top + 28}" class="note"><tspan class="name">compare</tspan>: {first}</text>')
    parts.append(f'<text x="32" y="{top + 52}" class="note">{second}</text>')
    return drawing(width, top + 68 + edge, "from a trained model to a checked image", parts)


def arrow(path: str) -> str:
    return f'<path d="{path}" class="edge" marker-end="url(#head)"/>'


def drawing(width: float, height: float, label: str, parts: list[str]) -> str:
    """Return an SVG with a background of its own, which makes it readable on light and dark pages."""
    style = (
        "text{font-family:system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif}.name{font-size:17px;font-weight:600;"
        "fill:#1d2126}.note{font-size:14.5px;fill:#414a54}.box{fill:#fff;stroke:#8fb8cf;stroke-width:1.5}"
        ".last{fill:#d7e6ec;stroke:#2f6f8f}.edge{fill:none;stroke:#2f6f8f;stroke-width:1.5}"
    )
    head = '<marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    head += '<path d="M0 0L9 4L0 8z" fill="#2f6f8f"/></marker>'
    size = f'width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{label}">\n'
        f"<style>{style}</style>\n<defs>{head}</defs>\n"
        f'<rect {size} rx="10" fill="#f4f4f0"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def recording(command: str) -> str:
    """Return a drawing of a terminal that shows a command and its output, without fonts from other servers."""
    console = Console(record=True, width=104, file=io.StringIO(), highlight=False)
    console.print(Text(command, style="bold"))
    console.print(Text(output_of(command)))
    drawn = console.export_svg(title="baretorch", theme=DIMMED_MONOKAI, unique_id="terminal")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


def report(name: str) -> Path:
    """Write the report's page if it has not been written, and return its path."""
    page = REPORTS / f"{name}.html"
    if not page.exists():
        page.parent.mkdir(parents=True, exist_ok=True)
        run_command(["report", *PAGES[name], "--out", str(page)])
    return page


def screenshot(page: str, width: int, height: int, picture: Path) -> None:
    """Write what Chromium shows of a page in a window of this size."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"this needs one of {', '.join(BROWSERS)}: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        alone, drawn = Path(folder) / "page.html", Path(folder) / "page.png"
        alone.write_text(page, "utf-8")
        sizes = (f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", f"--screenshot={drawn}")
        subprocess.run([program, *FLAGS, *sizes, alone.as_uri()], check=True, capture_output=True, timeout=300)
        shutil.copyfile(drawn, picture)


def draw_section(page: Path, section: str, width: int, picture: Path) -> None:
    """Write one section of a report's page, or the top of the page, without empty space below it."""
    hidden = f"section:not(#{section or 'summary'}), footer, label:has(input)"
    hidden += ", header, h2, .lead" if section else ""
    style = f"{hidden} {{ display: none !important }} section {{ margin-top: 24px }} body {{ padding: {EDGE}px }}"
    shown = page.read_text("utf-8").replace("</head>", f"<style>{style}</style></head>")
    screenshot(shown, width, 1400, picture)
    drawn = Image.open(picture).convert("RGB")
    empty = Image.new("RGB", drawn.size, drawn.getpixel((0, drawn.height - 1)))
    *_, bottom = ImageChops.difference(drawn, empty).getbbox() or (0, 0, 0, drawn.height)
    cut = drawn.crop((0, 0, width, min(bottom + EDGE, drawn.height)))
    cut.quantize(128).save(picture, optimize=True)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    name, command = RECORDING
    (PICTURES / "pipeline.svg").write_text(pipeline(), "utf-8")
    (PICTURES / name).write_text(recording(command), "utf-8")
    for name, page, section, width in SECTIONS:
        draw_section(report(page), section, width, PICTURES / name)
    for picture in sorted(PICTURES.iterdir()):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

"""Measure three models on every board, for the pages of docs/boards: `make bench`, or

    python benchmarks/boards.py [BOARD …]

writes the rows of all boards, or of the named ones, to benchmarks/boards.json. `make docs` generates the pages from it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tables import ROOT

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.measure.facts import image_json
from baretorch.measure.run import measure_model
from baretorch.options import Io, Options
from baretorch.targets.boards import board_names, load_board

RESULTS = ROOT / "benchmarks" / "boards.json"
MODELS = ("examples/sine/model.py", "zoo/kws.py", "zoo/ad.py")
KEPT = (
    "toolchain", "emulator", "instructions", "cycles", "core_cycles", "flash_cycles", "clock_hz", "time_ms",
    "time_ms_range",
)  # fmt: skip


def measure(name: str) -> list[dict[str, Any]]:
    """Return the rows of a board: a model that does not fit has a misfit, and one that cannot run has sizes only."""
    board = load_board(name)
    rows = []
    for path in MODELS if not board.hosted else ():
        model = pipeline.lower_file(str(ROOT / path), Options(int8=True))
        row: dict[str, Any] = {"board": name, "model": model.source.name}
        try:
            with tempfile.TemporaryDirectory() as folder:
                compiled = pipeline.compile_lowered(model.with_io(Io.INT8), board, Options(io=Io.INT8))
                image = pipeline.build_image(compiled, Path(folder))
                facts = image_json(compiled, image)
                if board.emulators:
                    facts = measure_model(compiled, image).facts.to_json()
        except CompileError as error:
            if "too small" not in error.what:
                raise
            rows.append(row | {"misfit": error.what})
            continue
        sizes = {"flash": facts["flash"]["total"], "ram": facts["ram"]["total"]}
        rows.append(row | sizes | {key: facts[key] for key in KEPT if key in facts})
    return rows


def main() -> None:
    names = sys.argv[1:] or list(board_names())
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    with ProcessPoolExecutor() as pool:
        fresh = [row for rows in pool.map(measure, names) for row in rows]
    rows = [row for row in known if row["board"] in board_names() and row["board"] not in names] + fresh
    rows.sort(key=lambda row: str(row["board"]))
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"wrote {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

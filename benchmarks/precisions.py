"""The same layers in int8, int4 and int16: instructions and bytes. `python precisions.py` prints just these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers import M0PLUS, M4F, M33, M55, TOOLCHAIN

from baretorch import frontends, pipeline
from baretorch.options import Compiler, Io, Options
from baretorch.report.facts import compare
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (("conv3x3", "conv2d"), ("linear784", "linear"))  # a file of benchmarks/layers, and its layer's name
PRECISIONS = ("int8", "int4", "int16")
BOARDS = (M4F, M33, M55, M0PLUS, "virt-rv32")


def measure_all() -> list[dict[str, Any]]:
    """Each of them on each board, with int8 inputs and outputs: int16 includes the way there and back."""
    rows = []
    for file, layer in LAYERS:
        for precision in PRECISIONS:
            config = ROOT / "build" / "bench" / f"{file}-{precision}.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(f'[layers]\n"{layer}" = "{precision}"\n')
            path = str(ROOT / "benchmarks" / "layers" / f"{file}.py")
            source = pipeline.read(path, None, frontends.Int8(config=str(config)))
            for board in BOARDS:
                options = Options(toolchain=Compiler(TOOLCHAIN), io=Io.INT8)
                compiled = pipeline.compile_source(source, load_board(board), options)
                image = pipeline.build_image(compiled, config.with_suffix("") / board)
                facts = compare(compiled, image, pipeline.run_image(compiled, image)).to_json()
                told = {"model": file, "precision": precision, "board": board, "instructions": facts["instructions"]}
                rows.append(told | {"weights": facts["flash"]["weights"], "arena": facts["ram"]["arena"]})
    return rows


def section(rows: Sequence[dict[str, Any]]) -> str:
    """Of the page."""
    first = {(r["model"], r["board"]): r for r in rows if r["precision"] == PRECISIONS[0]}
    lines = [
        "## Precisions",
        "",
        "A layer in the precisions of `--config`, with how many times as much as int8 each takes. Inputs and outputs",
        "are int8: int16 includes the way there and back.",
        "",
        "| layer | board | precision | instructions | of int8 | weights | of int8 | arena |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        of = first[r["model"], r["board"]]
        ratios = [r[what] / of[what] for what in ("instructions", "weights")]
        lines.append(
            f"| {r['model']} | {r['board']} | {r['precision']} | {r['instructions']:,} | {ratios[0]:.2f} | "
            f"{r['weights']:,} | {ratios[1]:.2f} | {r['arena']:,} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(section(measure_all()))

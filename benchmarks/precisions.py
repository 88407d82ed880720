"""Measure layers, and a whole model, in int8, int4, int16 and float16: instructions and bytes.

`python benchmarks/precisions.py` writes the section of docs/benchmarks.md; `make bench` writes it with all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from peers import M0PLUS, M4F, M33, M55, TOOLCHAIN
from tables import ROOT, Row, line, replace_section

from baretorch import pipeline
from baretorch.measure.run import measure_model
from baretorch.options import Compiler, Io, Options
from baretorch.targets.boards import load_board

LAYERS = (  # a file of benchmarks/layers, its layer's name, and precisions
    ("conv3x3", "conv2d", ("int8", "int4", "int16", "float16")),
    ("depthwise3x3", "conv2d", ("int8", "int4", "int16")),
    ("linear784", "linear", ("int8", "int4", "int4g32", "int16", "float16")),
)
TOO_LARGE = {("linear784", "float16", M55)}  # 614 KiB of weights, where 512 are
GOALS = {("linear784", "int4"): 1.25, ("conv3x3", "int16"): 1.6}  # on M4F, of int8's instructions
BOARDS = (M4F, M33, M55, M0PLUS, "virt-rv32")
WHOLE, WHOLE_ON = "kws", (M4F, M55)  # a model of the zoo with int16 in all its layers
IN_INT16 = ("conv2d", "linear", "avg_pool2d", "softmax")


def measure_all() -> list[Row]:
    """Measure each layer in each precision on each board. Inputs and outputs are int8, and float for float16."""
    rows = []
    for file, layer, precisions in LAYERS:
        path = ROOT / "benchmarks" / "layers" / f"{file}.py"
        for precision in precisions:
            boards = [b for b in BOARDS if (file, precision, b) not in TOO_LARGE]
            rows += measure(path, [layer], precision, boards)
    return rows + measure_whole()


def measure_whole() -> list[Row]:
    path = ROOT / "zoo" / f"{WHOLE}.py"
    graph = pipeline.read(str(path)).graph
    made = [graph[n.outputs[0]] for n in graph.nodes if n.op.name in IN_INT16]
    layers = list(dict.fromkeys(t.origin.path or t.name for t in made))
    return [row for precision in ("int8", "int16") for row in measure(path, layers, precision, WHOLE_ON)]


def measure(path: Path, layers: Sequence[str], precision: str, boards: Sequence[str]) -> Iterator[Row]:
    config = ROOT / "build" / "bench" / f"{path.stem}-{precision}.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[layers]\n" + "".join(f'"{layer}" = "{precision}"\n' for layer in layers))
    model = pipeline.lower_file(str(path), Options(config=str(config)))
    for board in boards:
        io = Io.FLOAT if precision == "float16" else Io.INT8
        options = Options(toolchain=Compiler(TOOLCHAIN), io=io)
        compiled = pipeline.compile_lowered(model.with_io(io), load_board(board), options)
        facts = measure_model(compiled, config.with_suffix("") / board).facts.to_json()
        found = {"model": path.stem, "precision": precision, "board": board, "instructions": facts["instructions"]}
        yield found | {"weights": facts["flash"]["weights"], "arena": facts["ram"]["arena"]}


def section(rows: Sequence[Row]) -> str:
    """Return the section of the page."""
    first = {(r["model"], r["board"]): r for r in rows if r["precision"] == "int8"}
    lines = [
        "## Precisions",
        "",
        "Single layers in the precisions of `--config`, with their figures divided by those of int8. Inputs and",
        "outputs are int8, and float for float16; int16 includes the conversions. The last rows are a whole model",
        "with all its layers in int16. Goals on Cortex-M4F are "
        + ", ".join(f"{most} for {model} in {precision}" for (model, precision), most in GOALS.items())
        + ".",
        "",
        "| layer | board | precision | instructions | / int8 | weights | / int8 | arena |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        of = first[r["model"], r["board"]]
        ratios = [r[what] / of[what] for what in ("instructions", "weights")]
        goal = GOALS.get((r["model"], r["precision"])) if r["board"] == M4F else None
        of_int8 = f"{ratios[0]:.2f}" if goal is None or ratios[0] <= goal else f"**{ratios[0]:.2f}**"
        cells = [r["model"], r["board"], r["precision"], f"{r['instructions']:,}", of_int8]
        lines.append(line([*cells, f"{r['weights']:,}", f"{ratios[1]:.2f}", f"{r['arena']:,}"]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    replace_section(section(measure_all()))

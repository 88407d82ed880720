"""The same layers in int8, int4 and int16, and a whole model: instructions and bytes. `python precisions.py` prints
just these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peers import M0PLUS, M4F, M33, M55, TOOLCHAIN

from baretorch import pipeline
from baretorch.measure.run import measure_model
from baretorch.options import Compiler, Io, Options
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
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


def measure_all() -> list[dict[str, Any]]:
    """Each of them on each board, with int8 inputs and outputs: int16 includes the way there and back. Those of float16
    are float."""
    rows = []
    for file, layer, precisions in LAYERS:
        path = ROOT / "benchmarks" / "layers" / f"{file}.py"
        for precision in precisions:
            boards = [b for b in BOARDS if (file, precision, b) not in TOO_LARGE]
            rows += measured(path, [layer], precision, boards)
    return rows + measure_whole()


def measure_whole() -> list[dict[str, Any]]:
    path = ROOT / "zoo" / f"{WHOLE}.py"
    graph = pipeline.read(str(path)).graph
    made = [graph[n.outputs[0]] for n in graph.nodes if n.op.name in IN_INT16]
    layers = list(dict.fromkeys(t.origin.path or t.name for t in made))
    return [row for precision in ("int8", "int16") for row in measured(path, layers, precision, WHOLE_ON)]


def measured(path: Path, layers: Sequence[str], precision: str, boards: Sequence[str]) -> Iterator[dict[str, Any]]:
    config = ROOT / "build" / "bench" / f"{path.stem}-{precision}.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[layers]\n" + "".join(f'"{layer}" = "{precision}"\n' for layer in layers))
    model = pipeline.lower_file(str(path), Options(config=str(config)))
    for board in boards:
        io = Io.FLOAT if precision == "float16" else Io.INT8
        options = Options(toolchain=Compiler(TOOLCHAIN), io=io)
        compiled = pipeline.compile_lowered(model.with_io(io), load_board(board), options)
        facts = measure_model(compiled, config.with_suffix("") / board).facts.to_json()
        told = {"model": path.stem, "precision": precision, "board": board, "instructions": facts["instructions"]}
        yield told | {"weights": facts["flash"]["weights"], "arena": facts["ram"]["arena"]}


def section(rows: Sequence[dict[str, Any]]) -> str:
    """Of the page."""
    first = {(r["model"], r["board"]): r for r in rows if r["precision"] == "int8"}
    lines = [
        "## Precisions",
        "",
        "A layer in the precisions of `--config`, with how many times as much as int8 each takes. Inputs and outputs",
        "are int8: int16 includes the way there and back; of float16 they are float. Last a whole model with all its",
        "layers in int16. Goals on Cortex-M4F are "
        + ", ".join(f"{most} for {model} in {precision}" for (model, precision), most in GOALS.items())
        + ".",
        "",
        "| layer | board | precision | instructions | of int8 | weights | of int8 | arena |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        of = first[r["model"], r["board"]]
        ratios = [r[what] / of[what] for what in ("instructions", "weights")]
        goal = GOALS.get((r["model"], r["precision"])) if r["board"] == M4F else None
        of_int8 = f"{ratios[0]:.2f}" if goal is None or ratios[0] <= goal else f"**{ratios[0]:.2f}**"
        lines.append(
            f"| {r['model']} | {r['board']} | {r['precision']} | {r['instructions']:,} | {of_int8} | "
            f"{r['weights']:,} | {ratios[1]:.2f} | {r['arena']:,} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(section(measure_all()))

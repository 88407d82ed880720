"""Measure models on clusters, and compare them with their goals. Cycles are the simulator's, exact.

`python benchmarks/cluster.py` writes benchmarks/cluster.json and the section of docs/benchmarks.md; `make bench` writes
them with all others.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tables import ROOT, Row, replace_section

from baretorch import pipeline
from baretorch.measure.cluster import TracedRun, Use
from baretorch.measure.run import measure_model
from baretorch.options import Io, Options, Units
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board

RESULTS = ROOT / "benchmarks" / "cluster.json"
TITLE = "## Clusters"
MODELS = ("kws", "ic", "vww", "ad")
BOARDS = ("cluster8", "cluster4-soc")
PRODUCT = "benchmarks/layers/product.py"
# Goals of cluster8: the speed-up over one core, and cycles on all cores without the unit and with it.
RATIO = {"kws": 7.0, "ic": 7.5, "vww": 7.5}
ALONE, UNIT = {"kws": 240_000}, {"kws": 120_000, "ic": 150_000, "ad": 38_000}
PER_CYCLE = 16.0
WAITING = 5.0  # percent of the time in a layer that is bound by compute


def measure_all() -> list[Row]:
    rows = []
    for model in MODELS:
        lowered = _model(ROOT / "zoo" / f"{model}.py")
        for board in BOARDS:
            rows.append(_row(model, board, lowered))
            print(rows[-1], flush=True)
    product = _model(ROOT / PRODUCT)
    for board in BOARDS:
        found = _run(product, board, None, Units.OFF)
        layer = max(found.layers, key=lambda layer: layer.macs)
        rows.append({"model": "product", "board": board, "macs": layer.macs, "cycles": layer.cycles})
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def _row(model: str, board: str, lowered: LoweredModel) -> Row:
    one, all_ = _run(lowered, board, 1, Units.OFF), _run(lowered, board, None, Units.OFF)
    row: Row = {"model": model, "board": board, "cores": all_.cores, "one": one.cycles, "all": all_.cycles}
    row |= {"waiting": _waiting(all_)}
    cluster = load_board(board).chip.cluster
    if cluster is not None and cluster.gemm is not None:
        with_unit = _run(lowered, board, None, Units.AUTO)
        row |= {"unit": with_unit.cycles, "unit_waiting": _waiting(with_unit)}
    return row


def _model(path: Path) -> LoweredModel:
    return pipeline.lower_file(str(path), Options(int8=True, io=Io.INT8))


def _run(model: LoweredModel, board: str, cores: int | None, units: Units) -> TracedRun:
    options = Options(io=Io.INT8, cores=cores, units=units)
    compiled = pipeline.compile_lowered(model, load_board(board), options)
    with tempfile.TemporaryDirectory() as folder:
        found = measure_model(compiled, Path(folder)).profile.traced
    assert found is not None
    return found


def _waiting(found: TracedRun) -> Row:
    """Percent of the cores' time that goes by waiting for DMA: in all, and in the layer that is bound by compute, whose
    copies take less than what cores and unit do otherwise, in which it is most."""
    whole, dma = sum(found.uses, Use()), found.cluster.dma
    most, where = 0.0, ""
    for layer in found.layers:
        use = layer.use
        transfers = layer.copied / dma.bytes_per_cycle if dma else 0.0
        if use.cycles and transfers < layer.cycles - use.dma / found.cores and use.dma / use.cycles > most:
            most, where = use.dma / use.cycles, layer.name
    return {"all": round(100 * whole.dma / whole.cycles, 2), "most": round(100 * most, 2), "layer": where}


def section(rows: Sequence[Row]) -> str:
    """Return the section of the page."""
    models = [row for row in rows if "one" in row]
    lines = [
        TITLE,
        "",
        "Exact cycles of int8 models with int8 inputs and outputs. Goals are for cluster8; a bold figure misses its",
        "goal. Waiting for DMA is the share of all cores' time: in total, and in the worst layer that is bound by",
        "compute (its copies take less time than the rest).",
        "",
        "| model | chip | one core | all cores | goal | ratio | goal | waiting for DMA | most in a layer |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in models:
        goals = row["board"] == "cluster8"
        model, ratio = row["model"], row["one"] / row["all"]
        lines.append(
            f"| {model} | {row['board']}, {row['cores']} cores | {row['one']:,} | "
            f"{_most(row['all'], ALONE.get(model) if goals else None)} | "
            f"{_least(ratio, RATIO.get(model) if goals else None)} | {_shares(row['waiting'])} |"
        )
    lines += [
        "",
        "With the GEMM unit:",
        "",
        "| model | chip | all cores and the unit | goal | waiting for DMA | most in a layer |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for row in (row for row in models if "unit" in row):
        cells = (_most(row["unit"], UNIT.get(row["model"])), _shares(row["unit_waiting"]))
        lines.append(f"| {row['model']} | {row['board']} | {' | '.join(cells)} |")
    lines += ["", "A matrix product on the cores, with requantization (`benchmarks/layers/product.py`):", ""]
    lines += ["| chip | MACs | cycles | MACs per cycle | goal |", "|---|--:|--:|--:|--:|"]
    for row in (row for row in rows if row["model"] == "product"):
        rate = _least(row["macs"] / row["cycles"], PER_CYCLE if row["board"] == "cluster8" else None)
        lines.append(f"| {row['board']} | {row['macs']:,} | {row['cycles']:,} | {rate} |")
    return "\n".join(lines) + "\n"


def _most(value: int, goal: int | None) -> str:
    if goal is None:
        return f"{value:,} | –"
    return f"{value:,} | {goal:,}" if value <= goal else f"**{value:,}** | {goal:,}"


def _least(value: float, goal: float | None) -> str:
    if goal is None:
        return f"{value:.2f} | –"
    return f"{value:.2f} | {goal:g}" if value >= goal else f"**{value:.2f}** | {goal:g}"


def _shares(waiting: Row) -> str:
    most = f"{waiting['most']:.1f} % ({waiting['layer']})" if waiting["layer"] else "0 %"
    return f"{waiting['all']:.1f} % | {most if waiting['most'] <= WAITING else f'**{most}**'}"


if __name__ == "__main__":
    replace_section(section(measure_all()))

"""The memory plans of the whole zoo: the arena, what no plan can go below, and the proof; planned, not built.

    python benchmarks/ram.py

writes the last section of docs/benchmarks.md anew; `make bench` writes it with all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from peers import M4F, PEERS
from rich.progress import track

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.firmware.fit import roomy
from baretorch.ir.graph import Graph
from baretorch.options import Input, Io, Options
from baretorch.plan import make_plan
from baretorch.plan.memory.offsets import lower_bound, place
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
TITLE = "## RAM: every model of the zoo"
ROWS_GOAL = 20_000  # of vww in int8, in bands, its input's rows pulled through a callback


@dataclass(frozen=True)
class Packed:
    """An arena; no packing of its buffers is smaller than `bound`, and if `optimal`, none is smaller than it is."""

    arena: int
    bound: int
    optimal: bool

    @property
    def ratio(self) -> float:
        return self.arena / self.bound if self.bound else 1.0

    @property
    def proof(self) -> str:
        if self.arena == self.bound:
            return "the bound"
        return "optimal: no packing reaches the bound" if self.optimal else f"within {100 * (self.ratio - 1):.1f} %"


@dataclass(frozen=True)
class Row:
    """A model's plans: buffers that never share bytes, and as it is compiled; `pulled` is the arena in bands with
    pulled rows, where that has a goal."""

    model: str
    dtype: str
    apart: Packed
    shared: Packed
    goal: int | None = None
    pulled: int | None = None


def measure(path: str, int8: bool) -> list[Row]:
    """One row, or none where the model cannot be quantized."""
    try:
        model = pipeline.lower_file(str(ROOT / path), Options(int8=int8))
    except CompileError as error:
        print(f"left out: {path} in int8: {error.what}")
        return []
    source, graph, dtype = model.source, model.graph, "int8" if int8 else "float32"
    graph = _bare(graph) if int8 else graph
    board = roomy(load_board(M4F))
    plan = make_plan(graph, board)
    peers = PEERS.get((source.name, dtype, M4F))
    pulled = None
    if (source.name, dtype) == ("vww", "int8"):
        pulled = make_plan(graph, board, Options(ram=ROWS_GOAL, input=Input.ROWS)).arena
    shared = Packed(plan.arena, plan.layout.lower_bound, plan.layout.optimal)
    return [Row(source.name, dtype, _apart(plan), shared, peers.goal.ram if peers else None, pulled)]


def _bare(graph: Graph) -> Graph:
    """With int8 inputs and outputs, where the first and last layers are in int8."""
    try:
        return pipeline.with_io(graph, Io.INT8)
    except CompileError:
        return graph


def _apart(plan: Plan) -> Packed:
    """The same steps, without any buffer in the place of one that dies."""
    _, arena, optimal = place(plan.layout.buffers, plan.layout.banks[0].name, {s.name for s in plan.graph.state})
    return Packed(arena, lower_bound(plan.layout.buffers), optimal)


def section(rows: Sequence[Row]) -> str:
    """The tables, as Markdown."""
    goals = [line for row in rows for line in _goals(row)]
    lines = [
        TITLE,
        "",
        f"Planned for {M4F}, int8 models with int8 inputs and outputs. The bound is the most bytes that live at once,",
        "scratch included: no arena is smaller. Apart: no buffer shares bytes with another that lives. Shared, as",
        "models are compiled: outputs run into inputs that die, as far as the kernels allow.",
        "",
        "| model | apart: arena | bound | ratio | proof | shared: arena | bound | ratio | proof | of apart |",
        "|---|--:|--:|--:|---|--:|--:|--:|---|--:|",
        *(_line(row) for row in rows),
        "",
        "| RAM goal | arena | goal | of it | |",
        "|---|--:|--:|--:|---|",
        *goals,
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    cells = [f"{row.model} {row.dtype}"]
    for packed in (row.apart, row.shared):
        cells += [f"{packed.arena:,}", f"{packed.bound:,}", f"{packed.ratio:.2f}", packed.proof]
    cells.append(f"{row.shared.arena / row.apart.arena:.2f}" if row.apart.arena else "–")
    return f"| {' | '.join(cells)} |"


def _goals(row: Row) -> Iterator[str]:
    pairs = [(f"{row.model} {row.dtype}", row.shared.arena, row.goal)]
    pairs.append((f"{row.model} {row.dtype}, in bands, rows pulled", row.pulled or 0, row.pulled and ROWS_GOAL))
    for name, arena, goal in pairs:
        if goal:
            verdict = "met" if arena <= goal else f"**{arena - goal:,} too many**"
            yield f"| {name} | {arena:,} | {goal:,} | {arena / goal:.2f} | {verdict} |"


def measure_all() -> list[Row]:
    models = sorted(path.stem for path in (ROOT / "zoo").glob("*.py") if path.stem != "common")
    jobs = [(f"zoo/{model}.py", int8) for model in models for int8 in (False, True)]
    with ProcessPoolExecutor() as pool:
        parts = pool.map(measure, *zip(*jobs, strict=True))
        return [row for part in track(parts, "planning", total=len(jobs)) for row in part]


def main() -> None:
    page = ROOT / "docs" / "benchmarks.md"
    rows = section(measure_all())
    page.write_text(page.read_text().partition(TITLE)[0].rstrip("\n") + "\n\n" + rows)
    print(rows)


if __name__ == "__main__":
    main()

"""Plan the memory of the whole zoo, without building images: the arena, its lower bound, and the proof.

`python benchmarks/ram.py` writes the section of docs/benchmarks.md; `make bench` writes it with all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from peers import M4F, PEERS
from rich.progress import track
from tables import ROOT, line, replace_section

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.firmware.sizes import with_large_memories
from baretorch.ir.graph import Graph
from baretorch.options import Input, Io, Options
from baretorch.plan import make_plan
from baretorch.plan.memory.offsets import lower_bound, place_buffers
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board

TITLE = "## RAM: every model of the zoo"
ROWS_GOAL = 20_000  # of vww in int8, in bands, its input's rows pulled through a callback


@dataclass(frozen=True)
class Packed:
    """An arena. No packing of its buffers is smaller than `bound`; if `optimal`, none is smaller than the arena."""

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
    """The plans of a model: `apart` with buffers that never share bytes, `shared` as it is compiled. `pulled` is the
    arena in bands with pulled rows, if that has a goal."""

    model: str
    dtype: str
    apart: Packed
    shared: Packed
    goal: int | None = None
    pulled: int | None = None


def measure(path: str, int8: bool) -> list[Row]:
    """Return one row, or none if the model cannot be quantized."""
    try:
        model = pipeline.lower_file(str(ROOT / path), Options(int8=int8))
    except CompileError as error:
        print(f"left out: {path} in int8: {error.what}")
        return []
    source, graph, dtype = model.source, model.graph, "int8" if int8 else "float32"
    graph = _with_int8_io(graph) if int8 else graph
    board = with_large_memories(load_board(M4F))
    plan = make_plan(graph, board)
    peers = PEERS.get((source.name, dtype, M4F))
    pulled = None
    if (source.name, dtype) == ("vww", "int8"):
        pulled = make_plan(graph, board, Options(ram=ROWS_GOAL, input=Input.ROWS)).arena
    shared = Packed(plan.arena, plan.layout.lower_bound, plan.layout.optimal)
    return [Row(source.name, dtype, _apart(plan), shared, peers.goal.ram if peers else None, pulled)]


def _with_int8_io(graph: Graph) -> Graph:
    """Return the graph with int8 inputs and outputs if its first and last layers are in int8."""
    try:
        return pipeline.with_io(graph, Io.INT8)
    except CompileError:
        return graph


def _apart(plan: Plan) -> Packed:
    """Pack the buffers of a plan so that none shares bytes with another that is alive."""
    _, arena, optimal = place_buffers(
        plan.layout.buffers, plan.layout.banks[0].name, {s.name for s in plan.graph.state}
    )
    return Packed(arena, lower_bound(plan.layout.buffers), optimal)


def section(rows: Sequence[Row]) -> str:
    """Return the section of the page."""
    goals = [line for row in rows for line in _goals(row)]
    lines = [
        TITLE,
        "",
        f"Plans are for {M4F}, with int8 inputs and outputs for int8 models. The bound is the most bytes that are",
        "alive at once, scratch included; no arena is smaller. *Apart*: no buffer shares bytes with another that is",
        "alive. *Shared*, as models are compiled: outputs overlap inputs that die, as far as the kernels allow.",
        "",
        "| model | apart: arena | bound | ratio | proof | shared: arena | bound | ratio | proof | / apart |",
        "|---|--:|--:|--:|---|--:|--:|--:|---|--:|",
        *(_row(row) for row in rows),
        "",
        "| RAM goal | arena | goal | ratio | |",
        "|---|--:|--:|--:|---|",
        *goals,
    ]
    return "\n".join(lines) + "\n"


def _row(row: Row) -> str:
    cells = [f"{row.model} {row.dtype}"]
    for packed in (row.apart, row.shared):
        cells += [f"{packed.arena:,}", f"{packed.bound:,}", f"{packed.ratio:.2f}", packed.proof]
    cells.append(f"{row.shared.arena / row.apart.arena:.2f}" if row.apart.arena else "–")
    return line(cells)


def _goals(row: Row) -> Iterator[str]:
    pairs = [(f"{row.model} {row.dtype}", row.shared.arena, row.goal)]
    pairs.append((f"{row.model} {row.dtype}, in bands, rows pulled", row.pulled or 0, row.pulled and ROWS_GOAL))
    for name, arena, goal in pairs:
        if goal:
            verdict = "met" if arena <= goal else f"**{arena - goal:,} too many**"
            yield line([name, f"{arena:,}", f"{goal:,}", f"{arena / goal:.2f}", verdict])


def measure_all() -> list[Row]:
    models = sorted(path.stem for path in (ROOT / "zoo").glob("*.py") if path.stem != "common")
    jobs = [(f"zoo/{model}.py", int8) for model in models for int8 in (False, True)]
    with ProcessPoolExecutor() as pool:
        parts = pool.map(measure, *zip(*jobs, strict=True))
        return [row for part in track(parts, "planning", total=len(jobs)) for row in part]


if __name__ == "__main__":
    replace_section(section(measure_all()))

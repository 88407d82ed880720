"""The rung of emulated CPUs: all cases become one model with many inputs and outputs, and one image runs them.

The image fills its arena before each run, and both runs, each with its own pattern, must give equal outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from baretorch import pipeline
from baretorch.emit import emit
from baretorch.frontends import Source
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.options import Compiler, Optimize, Options, Weights
from baretorch.pipeline import Compiled, LoweredModel
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.ops.arrange import spread
from tests.ops.case import Case, Outputs
from tests.ops.merge import merged, need_written, shared_out
from tests.patterns import PATTERNS, filled_images

PER_IMAGE = 36  # the protocol counts inputs in a byte; of many more, compilers lay constants right behind the call


def run_emulated(
    cases: Sequence[Case],
    board: str,
    folder: Path,
    optimize: str,
    toolchain: str = "gcc",
    arrange: Callable[[Plan], Plan] = spread,
) -> list[Outputs]:
    """Return every case's output as the board's image computes it, with the buffers arranged so."""
    outputs: list[Outputs] = []
    for number, some in enumerate(_batches(cases)):
        graph, inputs = merged(some)
        source = Source("cases", {"forward": graph}, tuple(inputs))
        target = with_large_scratchpad(load_board(board))
        plan = arrange(make_plan(graph, target, Options(weights=Weights.FLASH)))
        with filled_images():
            c = emit("cases", {"forward": plan}, optimize)
        options = Options(toolchain=Compiler(toolchain), optimize=Optimize(optimize))
        compiled = Compiled(LoweredModel(source, {"forward": graph}), target, {"forward": plan}, c, options)
        image = pipeline.build_image(compiled, folder / str(number))
        machine = open_machine(image, compiled.c.run)
        try:
            link = Link(machine)
            runs = [shared_out(some, call_image(link, graph, inputs)) for _ in PATTERNS]
            outputs += need_written(some, runs)
        finally:
            machine.close()
    return outputs


def with_large_scratchpad(board: Board) -> Board:
    """Return a board of a simulated cluster whose scratchpad has room for many cases."""
    cluster = board.chip.cluster
    if cluster is None:
        return board
    memories = tuple(replace(m, size=4 << 20) if m.name == cluster.scratchpad else m for m in board.chip.memories)
    return replace(board, chip=replace(board.chip, memories=memories))


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for start in range(0, len(cases), PER_IMAGE):
        yield cases[start : start + PER_IMAGE]

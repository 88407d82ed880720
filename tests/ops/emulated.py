"""The rung of emulated CPUs: all cases become one model with many inputs and outputs, and one image runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from baretorch import pipeline
from baretorch.devices.link import Link
from baretorch.emulators import open_machine
from baretorch.emulators.run import call
from baretorch.frontends import Source
from baretorch.frontends.program import AtenProgram
from baretorch.targets.boards import load_board
from tests.ops.case import Case, Outputs
from tests.ops.merge import merged, shared_out

PER_IMAGE = 120  # the protocol counts inputs and outputs in a byte each


def run_emulated(
    cases: Sequence[Case], board: str, folder: Path, optimize: str, toolchain: str = "gcc"
) -> list[Outputs]:
    """Every case's output as the board's image computes it."""
    outputs: list[Outputs] = []
    for number, some in enumerate(_batches(cases)):
        graph, inputs = merged(some)
        nothing = Source("cases", AtenProgram("cases", (), {}, (), (), ()), tuple(inputs), None)
        compiled = pipeline.compile_graph(nothing, graph, load_board(board), optimize)
        image = pipeline.build_image(compiled, folder / str(number), "gcc")
        machine = open_machine(image, compiled.c.run)
        try:
            outputs += shared_out(some, call(Link(machine), graph, inputs))
        finally:
            machine.close()
    return outputs


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for start in range(0, len(cases), PER_IMAGE):
        yield cases[start : start + PER_IMAGE]

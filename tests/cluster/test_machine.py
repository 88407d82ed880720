"""Images on the simulated cluster: they answer as the host does, and take the cycles that the core's RTL takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.escape import c_prefix
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.types import Image
from baretorch.ir.io import store_inputs
from baretorch.machines.cluster.machine import ClusterMachine, config_of
from baretorch.machines.cluster.simulator import Simulator
from baretorch.machines.code import read_code
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.options import Io, Options, Units
from baretorch.pipeline import Compiled
from baretorch.targets.boards import load_board
from baretorch.targets.checks import need_cores
from tests.cluster.judge import judge, missing
from tests.cluster.requests import Event, events, trace
from tests.models import compile_model, int8_file
from tests.zoo.zoo import MODELS, lowered

ROOT = Path(__file__).parents[2]
INT8 = Options(io=Io.INT8, cores=1)
WHY = missing()
ROOM = 1 << 20
TOO_LARGE = ("mobilenet_v2",)  # for cluster8


@pytest.mark.parametrize(
    "options, text",
    [
        (Options(cores=9), "error: --cores 9: cluster8 has 8 cores\n  try   --cores 8"),
        (
            Options(core=1),
            "error: --core 1: a model runs on core 0 of cluster8, and others help\n"
            "  try   --cores 1 leaves the others alone",
        ),
    ],
)
def test_a_cluster_has_so_many_cores(options: Options, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        need_cores(load_board("cluster8"), options)
    assert caught.value.render() == text


def built(model: str, board: str, folder: Path) -> tuple[Compiled, Image]:
    source = int8_file(str(ROOT / model)).narrow
    compiled = compile_model(source, load_board(board), INT8)
    return compiled, pipeline.build_image(compiled, folder)


class Recorded(ClusterMachine):
    """A machine that records the commands it receives."""

    told = b""

    def write(self, data: bytes) -> None:
        self.told += data
        super().write(data)


def replayed(image: Image, run: str, told: bytes, rtl_answers: int = 0) -> list[Event]:
    """Return what the image does at its registers, with cycles, if all input arrives at once. With `rtl_answers`, the
    RTL runs it until it has written that many bytes."""
    chip = image.board.chip
    assert chip.cluster is not None
    code = read_code(image, run)
    simulator = Simulator(config_of(chip, chip.cluster, code, image.cores))
    try:
        for chunk in load_chunks(code.elf):
            assert simulator.load(chunk.address, chunk.data)
        trace(simulator, ROOM, registers=True)
        simulator.write(told)
        if rtl_answers:
            judge(simulator, 1 << 40, rtl_answers)
        else:
            simulator.run(1 << 40)
        return [e for e in events(simulator) if e.write]
    finally:
        simulator.close()


def answers_of(model: str, board: str, folder: Path) -> tuple[tuple[bytes, ...], Compiled, Image]:
    compiled, image = built(model, board, folder)
    run = pipeline.run_image(compiled, image)
    return tuple(y.tobytes() for y in run.outputs), compiled, image


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cluster8", "cluster4-soc"])
@pytest.mark.parametrize("model", ["zoo/kws.py", "zoo/ad.py"])
def test_answers_are_those_of_the_host(model: str, board: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert answers_of(model, board, here)[0] == answers_of(model, "host", there)[0]


def small_enough(model: str, units: Units, folder: Path) -> tuple[Compiled, Image] | None:
    """Return the model with int8 inputs and outputs, unless the first layers compute in float; None if it does not
    fit."""
    board, source = load_board("cluster8"), lowered(model, int8=True)
    for io in (Io.INT8, Io.FLOAT):
        try:
            compiled = compile_model(source, board, Options(io=io, cores=1, units=units))
            return compiled, pipeline.build_image(compiled, folder)
        except CompileError as error:
            if "too small" in error.what:
                return None
            assert io is Io.INT8 and error.what.startswith("--io int8"), error
    raise AssertionError(model)


@pytest.mark.slow
@pytest.mark.skipif(WHY is not None, reason=WHY or "")
@pytest.mark.parametrize("units", [Units.OFF, Units.AUTO])
@pytest.mark.parametrize("model", MODELS)
def test_cycles_are_those_of_the_rtl(model: str, units: Units, tmp_path: Path) -> None:
    """Every model of the zoo that fits takes the cycles of the RTL: start-up, an inference (two if it has state) and
    its answer. Each write to the console, the DMA engine and the GEMM unit is in the same cycle."""
    found = small_enough(model, units, tmp_path)
    assert (found is None) == (model in TOO_LARGE)
    if found is not None:
        judged(*found)


def judged(compiled: Compiled, image: Image) -> None:
    graph, machine = compiled.graph, Recorded(image, compiled.c.run)
    link = Link(machine)
    link.hello(c_prefix(graph.name))
    inputs = store_inputs(graph, compiled.source.examples)
    for _ in range(2 if graph.state else 1):
        call_image(link, graph, inputs)
    told, cycles = machine.told, machine.cycles()
    call_image(link, graph, inputs)
    if not graph.state and image.cores == 1:  # several cores' turns at a bank depend on the cycle
        assert cycles[0] == machine.cycles()[-1], "each inference takes the same"
    machine.close()
    ours = replayed(image, compiled.c.run, told)
    rtl = replayed(image, compiled.c.run, told, len(said(ours, image)) - 10)
    assert rtl == ours[: len(rtl)] and len(said(rtl, image)) >= len(said(ours, image)) - 10 > 20
    assert rtl[-1].cycle > sum(cycles) and np.all(np.diff([e.cycle for e in rtl]) >= 0)


@pytest.mark.slow
@pytest.mark.skipif(WHY is not None, reason=WHY or "")
@pytest.mark.parametrize("units", [Units.OFF, Units.AUTO])
@pytest.mark.parametrize("model", ["ad", "ic", "kws"])
def test_cycles_on_eight_cores_are_those_of_the_rtl(model: str, units: Units, tmp_path: Path) -> None:
    """Kernels that compete for banks, barriers, copies and the unit take the cycles of the RTL."""
    options = Options(io=Io.INT8, units=units)
    compiled = compile_model(lowered(model, int8=True), load_board("cluster8"), options)
    judged(compiled, pipeline.build_image(compiled, tmp_path))


def said(events: list[Event], image: Image) -> list[Event]:
    return [e for e in events if e.address == image.board.chip.uart.base]

"""Images on the simulated cluster: they answer as the host does, and take the cycles that the core's RTL takes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.emulators.cluster.machine import ClusterMachine, config_of
from baretorch.emulators.cluster.simulator import Event, Simulator
from baretorch.emulators.code import read_code
from baretorch.emulators.run import run_on
from baretorch.errors import CompileError
from baretorch.firmware.chunks import loaded
from baretorch.firmware.types import Image
from baretorch.frontends import Int8
from baretorch.options import Io, Options
from baretorch.pipeline import Compiled, need_cores
from baretorch.ports import stored
from baretorch.targets.boards import load_board
from tests.cluster.judge import judge_library, missing

ROOT = Path(__file__).parents[2]
INT8 = Options(io=Io.INT8, cores=1)
WHY = missing()
ROOM = 1 << 18


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
    source = pipeline.read(str(ROOT / model), None, Int8())
    compiled = pipeline.compile_source(source, load_board(board), INT8)
    return compiled, pipeline.build_image(compiled, folder)


class Recorded(ClusterMachine):
    """It remembers what it was told."""

    told = b""

    def write(self, data: bytes) -> None:
        self.told += data
        super().write(data)


def replayed(image: Image, run: str, told: bytes, answers: int, library: ctypes.CDLL | None) -> list[Event]:
    """What the image does at its registers, and when, if all is told at once; on the RTL if the library has that."""
    chip = image.board.chip
    assert chip.cluster is not None
    code = read_code(image, run)
    simulator = Simulator(config_of(chip, chip.cluster, code, 1), library)
    try:
        for chunk in loaded(code.elf):
            assert simulator.load(chunk.address, chunk.data)
        simulator.trace(ROOM, registers=True)
        simulator.write(told)
        if library is not None:
            library.bt_judge(simulator.handle, 1 << 40, answers)
        else:
            simulator.run(1 << 40)
        return [e for e in simulator.events() if e.write]
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


@pytest.mark.slow
@pytest.mark.skipif(WHY is not None, reason=WHY or "")
@pytest.mark.parametrize("model", ["examples/sine/model.py", "zoo/ad.py", "zoo/kws.py", "zoo/ic.py", "zoo/vww.py"])
def test_cycles_are_those_of_the_rtl(model: str, tmp_path: Path) -> None:
    """Start-up, two inferences and what is said about them: every write to the console in the same cycle."""
    compiled, image = built(model, "cluster8", tmp_path)
    machine = Recorded(image, compiled.c.run)
    run = run_on(machine, compiled.graph, stored(compiled.graph, compiled.source.examples))
    told, cycles = machine.told, machine.cycles()
    machine.close()
    ours = replayed(image, compiled.c.run, told, 0, None)
    rtl = replayed(image, compiled.c.run, told, len(ours) - 10, judge_library())
    assert rtl == ours[: len(rtl)] and len(rtl) > 100
    assert cycles[0] == cycles[1] == run.emulator_cycles and np.all(np.diff([e.cycle for e in rtl]) > 0)

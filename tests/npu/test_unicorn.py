"""An image with our driver and an NPU in a chip on Unicorn: with and without its interrupt, and when it goes wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.ir.graph import interpret
from baretorch.machines.run import run_on
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.npu import vela
from baretorch.options import Io, Options, UseNpu
from baretorch.pipeline import Compiled
from baretorch.targets.boards import load_board
from baretorch.targets.parts import Npu
from baretorch.targets.types import Board
from tests.npu.damage import constants_of, damaged
from tests.npu.odd import OddNpu, make_odd
from tests.npu.test_judge import chain

BASE = 0x48102000


def board(irq: int | None) -> Board:
    """Return Arm's AN505 with an Ethos-U55 next to its Cortex-M33."""
    plain = load_board("mps2-an505")
    npu = Npu("ethosu", "ethos-u55-128", BASE, "Ethos_U55_High_End_Embedded", "Shared_Sram", "SRAM", "CODE", irq)
    chip = replace(plain.chip, npu=npu, peripherals=((BASE, 0x1000), *plain.chip.peripherals))
    return replace(plain, chip=chip)


def built(irq: int | None, folder: Path, app: str | None = None) -> tuple[Compiled, Image]:
    if not vela.is_installed():
        pytest.skip("Vela is not installed: tools/setup.sh test does that")
    graph = chain()
    given = tuple(np.zeros(graph[name].shape, np.int8) for name in graph.inputs)
    source = Source("chain", {"forward": graph}, given)
    compiled = pipeline.compile_graph(source, graph, board(irq), Options(io=Io.INT8, npu=UseNpu.REQUIRE, app=app))
    return compiled, pipeline.build_image(compiled, folder)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, Image]:
    return built(56, tmp_path_factory.mktemp("image"))


def check(compiled: Compiled, image: Image) -> int:
    """Instructions of a call that answers as the graph does."""
    graph, rng = compiled.graph, np.random.default_rng(5)
    machine = UnicornMachine(image, compiled.c.run)
    for _ in range(2):
        inputs = [rng.integers(-128, 128, graph[name].shape).astype(np.int8) for name in graph.inputs]
        run = run_on(machine, graph, inputs)
        (name,) = graph.outputs
        assert np.array_equal(run.outputs[0], interpret(chain(), inputs)[name])
    assert machine.npu is not None and machine.npu.device.runs >= 4
    return machine.instructions()[-1]


def test_with_an_interrupt(image: tuple[Compiled, Image]) -> None:
    assert check(*image) < 3000


@pytest.mark.slow
def test_looking_again_and_again(tmp_path: Path) -> None:
    assert check(*built(None, tmp_path)) < 3000


@pytest.fixture
def machine(image: tuple[Compiled, Image]) -> UnicornMachine:
    compiled, built_image = image
    return UnicornMachine(built_image, compiled.c.run)


def said(machine: UnicornMachine, compiled: Compiled) -> str:
    """Return the text that the image prints instead of an answer."""
    inputs = [np.zeros(compiled.graph[name].shape, np.int8) for name in compiled.graph.inputs]
    with pytest.raises(DeviceFault) as fault:
        run_on(machine, compiled.graph, inputs)
    return fault.value.render()


def with_bit(data: bytes, bit: int) -> bytes:
    """The other way."""
    return bytes(byte ^ (1 << bit % 8 if i == bit // 8 else 0) for i, byte in enumerate(data))


@pytest.mark.parametrize("part", [0, 1], ids=["commands", "weights"])
@pytest.mark.parametrize("where", [0.0, 0.37, 0.999])
def test_a_flipped_bit(part: int, where: float, image: tuple[Compiled, Image], tmp_path: Path) -> None:
    """The NPU is not started: most bits of a stream and all of the weights would be a wrong answer."""
    compiled, built_image = image
    data = constants_of(compiled)[part]
    other = with_bit(data, int(8 * len(data) * where))
    machine = UnicornMachine(damaged(built_image, compiled, tmp_path, data, other), compiled.c.run)
    text = said(machine, compiled)
    assert "the commands or weights for the NPU are damaged" in text and "checksum" in text
    assert machine.npu is not None and machine.npu.device.runs == 0


def test_looked_at_once(image: tuple[Compiled, Image]) -> None:
    """The checksum takes its time before the first run, and none after it."""
    compiled, built_image = image
    machine = UnicornMachine(built_image, compiled.c.run)
    inputs = [np.zeros(compiled.graph[name].shape, np.int8) for name in compiled.graph.inputs]
    run_on(machine, compiled.graph, inputs)
    first, second = machine.instructions()[:2]
    size = sum(map(len, constants_of(compiled)))
    assert 8 * size < first - second < 16 * size and second < 1000


def test_an_unknown_command(image: tuple[Compiled, Image], tmp_path: Path) -> None:
    compiled, built_image = image
    commands = constants_of(compiled)[0]
    other = bytes([commands[0] ^ 0x40]) + commands[1:]
    broken = damaged(built_image, compiled, tmp_path, commands, other, hidden=True)
    assert "found a command that it does not know" in said(UnicornMachine(broken, compiled.c.run), compiled)


def test_a_bus_error(machine: UnicornMachine, image: tuple[Compiled, Image]) -> None:
    assert machine.npu is not None
    machine.npu.device._banks = machine.npu.device._banks[:1]
    assert "read or wrote where nothing answers" in said(machine, image[0])


def test_a_timeout(machine: UnicornMachine, image: tuple[Compiled, Image]) -> None:
    assert machine.npu is not None
    make_odd(machine.npu.device, OddNpu(stuck=True))
    assert "did not end in time" in said(machine, image[0])


def test_a_stream_that_depends_on_chance(image: tuple[Compiled, Image], tmp_path: Path) -> None:
    compiled, built_image = image
    commands = constants_of(compiled)[0]
    wait = commands.index(b"\x11\0\0\0")
    other = commands[:wait] + b"\x13" + commands[wait + 1 :]  # PMU_MASK instead
    broken = damaged(built_image, compiled, tmp_path, commands, other, hidden=True)
    assert "without a DMA_WAIT between them" in said(UnicornMachine(broken, compiled.c.run), compiled)


CALLER = """\
#include "bt_runtime.h"
#include "model.h"

static uint32_t room[CHAIN_ARENA_BYTES / 4 + 4] __attribute__((aligned(16)));

void bt_main(void)
{
    chain_run_in(room + 1, 0, 0, 0);
    bt_print("it returned");
    bt_model_call();
    for (;;) {
        bt_console_get();
    }
}
"""


@pytest.mark.slow
def test_an_arena_that_is_not_aligned(tmp_path: Path) -> None:
    """The NPU would leave the address's lowest bits out, and compute with something else."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "main.c").write_text(CALLER)
    compiled, image = built(56, tmp_path, str(app))
    machine = UnicornMachine(image, compiled.c.run)
    heard = b""
    while b"END OF FAULT" not in heard and b"it returned" not in heard:
        heard += machine.read(10)
    assert b"the arena is not aligned to 16" in heard and b"it returned" not in heard

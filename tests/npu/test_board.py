"""corstone-300 runs in QEMU with the emulated NPU: the image as built, its driver, its interrupt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch.explore.advice import advise
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.ir.graph import DType, Graph, interpret
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.npu.device import CUSTOM_DMA
from baretorch.machines.qemu import machine as qemu
from baretorch.machines.qemu.npu import AttachedNpu
from baretorch.machines.run import Run, run_on
from baretorch.machines.types import DeviceFault
from baretorch.measure.facts import compare
from baretorch.measure.profile import make_profile
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.options import Buffers, Options, UseNpu
from baretorch.pipeline import Compiled, build_image, compile_graph
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.npu.damage import constants_of, damaged
from tests.npu.odd import OddNpu, make_odd
from tests.npu.test_partition import Net, Q


def net() -> Graph:
    """A convolution, a max pool, a table and a sum."""
    lot = np.random.default_rng(3)
    g = Net("net")
    x = g.input("x", (1, 8, 8, 3), DType.INT8, Q)
    constants = (
        g.const("w", lot.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8)),
        g.const("b", lot.integers(-5000, 5000, 8).astype(np.int32)),
        g.const("m", lot.integers(2**21, 2**23, 8).astype(np.int32)),
    )
    y = g.kept(g.add(QConv2d(3, 3, padding=(1, 1, 1, 1), pool=(2, 2)), x, *constants))
    return g.graph((x,), (g.sum(g.table(y), y),))


def compiled_for(board: str) -> Compiled:
    graph = net()
    lot = np.random.default_rng(4)
    x = lot.integers(-128, 128, graph["x"].shape).astype(np.float32)
    source = Source("net", {"forward": graph}, ((x - 3) * np.float32(0.1),))
    return compile_graph(source, graph, load_board(board), Options(npu=UseNpu.REQUIRE))


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_for("corstone-300")


@pytest.fixture(scope="module")
def image(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return build_image(compiled, tmp_path_factory.mktemp("npu"))


def ran(compiled: Compiled, image: Image) -> Run:
    machine = open_machine(image, compiled.c.run)
    try:
        return run_on(machine, compiled.graph, store_inputs(compiled.graph, compiled.source.examples))
    finally:
        machine.close()


def with_word(commands: bytes, word: int, value: int) -> bytes:
    return commands[: 4 * word] + value.to_bytes(4, "little") + commands[4 * word + 4 :]


def test_the_npu_answers_as_the_graph_means(compiled: Compiled, image: Image) -> None:
    check(compiled, image)


@pytest.fixture(scope="module")
def with_u85(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, Image]:
    made = compiled_for("corstone-320")
    return made, build_image(made, tmp_path_factory.mktemp("u85"))


def test_corstone_320_with_its_u85(with_u85: tuple[Compiled, Image]) -> None:
    """QEMU's core starts elsewhere, and its NPU's interrupt is one of the subsystem's own."""
    check(*with_u85)


def test_a_branch_to_nowhere_ends_in_words(with_u85: tuple[Compiled, Image], tmp_path: Path) -> None:
    compiled, image = with_u85
    commands = constants_of(compiled)[0]
    other = with_word(with_word(commands, 0, 0x4100), 1, 0xFFFF_FFF0)
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, damaged(image, compiled, tmp_path, commands, other, hidden=True))
    assert "the NPU branched to where no command is" in fault.value.render()
    assert "status 0x00000202" in fault.value.render()


def test_a_u85_with_other_ports_is_refused(with_u85: tuple[Compiled, Image], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weight decoders and custom DMA may differ; a stream depends on the number of AXI ports."""
    found = qemu._npu

    def beside(variant: OddNpu) -> Callable[[Board], AttachedNpu | None]:
        def made(board: Board) -> AttachedNpu | None:
            npu = found(board)
            assert npu is not None
            make_odd(npu.device, variant)
            return npu

        return made

    monkeypatch.setattr(qemu, "_npu", beside(OddNpu(config=CUSTOM_DMA | 0x3000)))
    check(*with_u85)
    monkeypatch.setattr(qemu, "_npu", beside(OddNpu(config=0x400)))
    with pytest.raises(DeviceFault) as fault:
        ran(*with_u85)
    assert "AXI ports 0x20000518 instead of 0x20000118" in fault.value.render()


def check(compiled: Compiled, image: Image) -> None:
    assert compiled.partition is not None and not compiled.partition.left
    run = ran(compiled, image)
    want = interpret(compiled.graph, store_inputs(compiled.graph, compiled.source.examples))
    for got in (run.first, run.outputs):
        np.testing.assert_array_equal(got[0], want[compiled.graph.outputs[0]])
    assert run.instructions is not None and 100 < run.instructions < 3000


def test_advice_leaves_the_npu_its_work(compiled: Compiled, image: Image) -> None:
    """The saving of another option is computed by a plan with the NPU, not by one for the CPU alone."""
    facts = compare(compiled, image, ran(compiled, image))
    alone = make_plan(compiled.graph, compiled.board, replace(compiled.options, buffers=Buffers.CALLER))
    told = [advice.text for advice in advise(facts, make_profile(compiled, image, facts.run))]
    assert alone.arena < compiled.plan.arena
    assert not any(f"arena {alone.arena:,} instead" in text for text in told)


@pytest.mark.parametrize("part", [0, 1], ids=["commands", "weights"])
def test_a_flipped_bit_ends_in_words(part: int, compiled: Compiled, image: Image, tmp_path: Path) -> None:
    data = constants_of(compiled)[part]
    middle = len(data) // 2
    other = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, damaged(image, compiled, tmp_path, data, other))
    assert "the commands or weights for the NPU are damaged" in fault.value.render()


def test_an_unknown_command_ends_in_words(compiled: Compiled, image: Image, tmp_path: Path) -> None:
    commands = constants_of(compiled)[0]
    other = with_word(commands, 0, 0x000003FF)
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, damaged(image, compiled, tmp_path, commands, other, hidden=True))
    assert "the NPU found a command that it does not know" in fault.value.render()
    assert "of the command stream" in fault.value.render()


def test_an_address_where_nothing_is_ends_in_words(compiled: Compiled, image: Image, tmp_path: Path) -> None:
    commands = constants_of(compiled)[0]
    words = np.frombuffer(commands, np.uint32).tolist()
    base = next(i for i, word in enumerate(words) if word & 0xFFFF == 0x4000)  # IFM_BASE0, and its address
    other = with_word(commands, base + 1, 0x7000_0000)
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, damaged(image, compiled, tmp_path, commands, other, hidden=True))
    assert "the NPU read or wrote where nothing answers" in fault.value.render()


def test_another_npu_is_refused(compiled: Compiled, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver compares what it finds with what the stream is for."""
    found = qemu._npu

    def smaller(board: Board) -> AttachedNpu | None:
        npu = board.chip.npu
        assert npu is not None
        return found(replace(board, chip=replace(board.chip, npu=replace(npu, accelerator="ethos-u55-128"))))

    monkeypatch.setattr(qemu, "_npu", smaller)
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, image)
    said = fault.value.render()
    assert "the NPU is not the one that the model was compiled for" in said
    assert "MACs per cycle 0x00001807 instead of 0x00003008" in said


@pytest.mark.slow
def test_one_that_never_ends_is_given_up(compiled: Compiled, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    found = qemu._npu

    def stuck(board: Board) -> AttachedNpu | None:
        beside = found(board)
        assert beside is not None
        make_odd(beside.device, OddNpu(stuck=True))
        return beside

    monkeypatch.setattr(qemu, "_npu", stuck)
    with pytest.raises(DeviceFault) as fault:
        ran(compiled, image)
    assert "the NPU did not end in time" in fault.value.render()

"""Weights that are copied to RAM at start: those read most, as far as there is room. No run reads them from flash."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import unicorn as uc
from torch import nn

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.frontends import Source, from_methods, from_module
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.run import run_on
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.measure.memory_map import memory_map
from baretorch.options import DEFAULT, Buffers, Compiler, Options, Weights
from baretorch.pipeline import Compiled
from baretorch.plan.weights.choose import STATIC
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.models import cnn, cnn_input
from tests.plan.test_banks import smaller
from tests.test_structure import coder

RAM = Options(toolchain=Compiler.GCC, weights=Weights.RAM)
PICO = load_board("pico")


def compiled_for(board: Board, options: Options = RAM) -> Compiled:
    return pipeline.compile_source(from_module(cnn(), (cnn_input(),), "cnn"), board, options)


def reads_of_weights(compiled: Compiled, image: Image) -> tuple[int, np.ndarray]:
    """How often a run reads weights in flash, and what it answers."""
    flash = next(bank for bank in memory_map(image) if bank.memory.name == image.board.chip.code)
    (piece,) = [p for p in flash.pieces if p.kind == "weights"]
    machine = open_machine(image, compiled.c.run, "unicorn")
    assert isinstance(machine, UnicornMachine)
    count = 0

    def on_read(*_: Any) -> None:
        nonlocal count
        count += 1

    inputs = store_inputs(compiled.graph, compiled.source.examples)
    core, end = machine._cores[0], piece.address + piece.size - 1
    core.uc.hook_add(uc.UC_HOOK_MEM_READ, on_read, begin=piece.address, end=end)
    try:
        run_on(machine, compiled.graph, inputs)
        assert count >= piece.size // 4, "start-up code copies them, or the run reads them"
        count = 0
        run = run_on(machine, compiled.graph, inputs)
    finally:
        machine.close()
    return count, run.outputs[0]


@pytest.mark.parametrize(
    ("board", "bank", "toolchain"),
    [
        ("pico", "SCRATCH", Compiler.GCC),
        ("nucleo-h743zi", "DTCM", Compiler.ZIG),
        pytest.param("pico", "SCRATCH", Compiler.ZIG, marks=pytest.mark.slow),
        pytest.param("nucleo-h743zi", "DTCM", Compiler.GCC, marks=pytest.mark.slow),
    ],
)
def test_no_weight_is_read_from_flash(board: str, bank: str, toolchain: Compiler, tmp_path: Path) -> None:
    answers = []
    for where in (Weights.FLASH, Weights.RAM):
        compiled = compiled_for(load_board(board), Options(toolchain=toolchain, weights=where))
        image = pipeline.build_image(compiled, tmp_path / where)
        reads, answer = reads_of_weights(compiled, image)
        answers.append(answer)
        weights = compiled.plan.weight_bytes()
        assert image.flash.weights == weights, "they are stored once"
        if where is Weights.RAM:
            assert reads == 0
            assert image.ram.weights == weights
            assert set(compiled.plan.layout.copies.values()) == {bank}, "a bank that nothing else lies in comes first"
            assert image.ram.total == image.ram.arena + weights + image.ram.static + image.ram.stack
        else:
            assert reads > compiled.graph.macs() / 8
            assert image.ram.weights == 0
    np.testing.assert_array_equal(answers[0], answers[1])


def test_what_is_read_most_comes_first(tmp_path: Path) -> None:
    """Convolutions read each of their weights many times, the linear layer once."""
    arena = compiled_for(PICO).plan.arena
    board = smaller(smaller(PICO, "SCRATCH", 64), "SRAM", arena + STATIC + 2200)
    compiled = compiled_for(board)
    banks = {c.name: compiled.plan.layout.copies.get(c.name, "") for c in compiled.plan.layout.constants}
    assert banks["fc.weight"] == "" and compiled.plan.layout.constant("fc.weight").data.nbytes == 2560
    assert all(banks[f"{layer}.weight"] == "SRAM" for layer in ("c1", "c4")), "and of those the largest first"
    pipeline.build_image(compiled, tmp_path)  # and there is room for it


def test_methods_share_copies() -> None:
    module, methods = coder()
    source = from_methods(module, methods, "coder", "encode")
    compiled = pipeline.compile_source(source, PICO, RAM)
    weights = compiled.c.files["weights.c"]
    assert weights.count("BT_WEIGHTS_IN(SCRATCH, coder_layer_weight)") == 1
    assert "BT_WEIGHTS(coder_layer_weight)" not in weights


def test_flash_as_fast_as_ram() -> None:
    with pytest.raises(CompileError, match="--weights ram gains nothing on mps2-an386") as caught:
        compiled_for(load_board("mps2-an386"))
    assert caught.value.have == ("CODE is as fast as RAM",)


def test_a_board_of_the_users_may_say_why_its_flash_is_slow() -> None:
    chip = load_board("mps2-an386").chip
    memories = tuple(replace(m, slow="far away") if m.name == chip.code else m for m in chip.memories)
    board = replace(load_board("mps2-an386"), chip=replace(chip, memories=memories))
    assert set(compiled_for(board).plan.layout.copies.values()) == {"SRAM"}


def layers(*sizes: int) -> Source:
    module = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)))
    return from_module(module.eval(), (torch.randn(1, sizes[0]),), "m")


def copied(board: Board, source: Source, options: Options = DEFAULT) -> dict[str, str]:
    """The layers whose weights are copied, and the bank."""
    copies = pipeline.compile_source(source, board, options).plan.layout.copies
    return {name: bank for name, bank in copies.items() if name.endswith("weight")}


def test_by_itself_what_does_not_stay_in_the_cache_goes_to_ram() -> None:
    small, large = layers(40, 32, 16), layers(64, 128, 32)  # 7 and 48 KiB; the cache has 16
    assert copied(PICO, small) == {}
    assert set(copied(PICO, large)) == {"0.weight", "1.weight"}
    assert copied(PICO, large, Options(weights=Weights.FLASH)) == {}
    assert copied(load_board("mps2-an386"), large) == {}, "which waits for no flash"
    source = layers(64, 32, 16, 8)  # 10.5 KiB, of which half a cache stays where it is
    assert copied(PICO, source) == {"0.weight": "SRAM"}


def test_by_itself_some_room_is_left() -> None:
    arena = 1024
    for room, found in ((16 << 10, set()), (40 << 10, {"1.weight"}), (80 << 10, {"0.weight", "1.weight"})):
        board = smaller(smaller(PICO, "SCRATCH", 64), "SRAM", arena + STATIC + room)
        assert set(copied(board, layers(64, 128, 32))) == found


def test_by_itself_nothing_goes_where_flash_has_its_cache() -> None:
    """The H743's data cache is before flash and before AXI SRAM."""
    board = load_board("nucleo-h743zi")
    assert board.chip.data == "AXISRAM"
    conv = nn.Conv2d(64, 64, 3)  # 144 KiB, again for every few pixels
    source = from_module(conv.eval(), (torch.randn(1, 64, 12, 12),), "m")
    assert copied(board, source) == {}
    assert set(copied(board, source, RAM).values()) == {"AXISRAM"}
    smaller_conv = nn.Conv2d(32, 32, 3)
    source = from_module(smaller_conv.eval(), (torch.randn(1, 32, 12, 12),), "m")
    assert set(copied(board, source).values()) == {"DTCM"}
    assert copied(board, layers(64, 128, 32)) == {}, "read once, it does not pay"


def test_the_choice_is_reported_where_it_matters() -> None:
    large, small = layers(64, 128, 32), layers(40, 32, 16)
    for source, told in ((large, True), (small, False)):
        text = pipeline.compile_source(source, PICO).c.files["model.c"]
        assert ("--weights auto" in text) is told


class Large(nn.Module):
    """A model whose weights take almost all of a bank."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.a = nn.Linear(inputs, 7, bias=False)
        self.b = nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x))


def test_what_the_caller_lends_has_room_too(tmp_path: Path) -> None:
    source = from_module(Large(16384).eval(), (torch.randn(1, 16384),), "m")
    compiled = pipeline.compile_source(
        source, load_board("pico2w"), Options(toolchain=Compiler.GCC, weights=Weights.RAM, buffers=Buffers.CALLER)
    )
    pipeline.build_image(compiled, tmp_path)
    assert "a.weight" not in compiled.plan.layout.copies


@pytest.mark.parametrize("more", [{"cores": 2}, {"core": 1}])
def test_both_stacks_have_room(more: dict[str, int], tmp_path: Path) -> None:
    """The larger layer would fit if core 1 had none."""
    module = nn.Sequential(nn.Linear(1, 512), nn.Linear(512, 123))
    source = from_module(module.eval(), (torch.randn(1, 1),), "m")
    one, two = (pipeline.compile_source(source, PICO, options) for options in (RAM, replace(RAM, **more)))
    copied = [sum(p.layout.constant(name).data.nbytes for name in p.layout.copies) for p in (one.plan, two.plan)]
    assert copied[1] < 4 * 512 * 123 < copied[0]
    pipeline.build_image(two, tmp_path)


@pytest.mark.parametrize("less", range(0, 64, 12))
def test_weights_and_an_arena_in_the_same_bank(less: int, tmp_path: Path) -> None:
    count = (8192 - 36 - less) // 4
    weights = nn.Linear(count, 1, bias=False)
    module = nn.Sequential(nn.Linear(4, 9, bias=False), nn.Tanh(), nn.Linear(9, count), weights)
    source = from_module(module.eval(), (torch.randn(1, 4),), "m")
    compiled = pipeline.compile_source(
        source, PICO, Options(toolchain=Compiler.GCC, place={"0": "SCRATCH"}, weights=Weights.RAM)
    )
    pipeline.build_image(compiled, tmp_path)

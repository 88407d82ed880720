"""--code ram: the model's code runs from RAM, as fast and as exactly counted as from flash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.frontends import from_module
from baretorch.machines.run import Run
from baretorch.options import CodeIn, Compiler, Options, Weights
from baretorch.pipeline import SLACK
from baretorch.plan.weights.choose import SECTION, STATIC
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.models import cnn, cnn_input


def ran(board: str, folder: Path, options: Options) -> tuple[Image, Run]:
    source = from_module(cnn(), (cnn_input(),), "cnn")
    compiled = pipeline.compile_source(source, load_board(board), options)
    image = pipeline.build_image(compiled, folder / options.code)
    return image, pipeline.run_image(compiled, image)


@pytest.mark.parametrize(
    ("board", "toolchain", "cores"),
    [
        ("pico", Compiler.GCC, 1),
        ("pico", Compiler.ZIG, 1),
        ("pico2w", Compiler.GCC, 2),
        ("nucleo-h743zi", Compiler.GCC, 1),
    ],
)
def test_code_in_ram(board: str, toolchain: Compiler, cores: int, tmp_path: Path) -> None:
    (there, slow), (image, fast) = (
        ran(board, tmp_path, Options(toolchain=toolchain, cores=cores, weights=Weights.FLASH, code=code))
        for code in (CodeIn.FLASH, CodeIn.RAM)
    )
    np.testing.assert_array_equal(fast.outputs[0], slow.outputs[0])
    assert fast.instructions == slow.instructions
    assert there.ram.code == 0 and 0.9 * image.flash.model_code < image.ram.code, "all but tables"
    grown = image.ram.total - there.ram.total - (image.ram.stack - there.ram.stack)
    assert grown >= image.ram.code, "RAM is told with it"
    data = image.board.chip.memory(image.board.chip.data)
    assert fast.blocks and all(data.origin <= b.address < data.origin + data.size for b in fast.blocks)
    assert sum(b.instructions * b.executed for b in fast.blocks) == sum(
        b.instructions * b.executed for b in slow.blocks
    )
    assert fast.flash is not None and sum(f.code_misses for f in fast.flash) == 0


def test_both_in_ram_have_room(tmp_path: Path) -> None:
    options = Options(toolchain=Compiler.GCC, weights=Weights.RAM, code=CodeIn.RAM)
    image, run = ran("pico", tmp_path, options)
    assert image.ram.code and image.ram.weights == image.flash.weights
    assert run.flash == ()


def test_weights_have_all_that_code_leaves(tmp_path: Path) -> None:
    """The weights fit next to the code, but not next to an estimate of its size."""
    image, _ = ran("pico", tmp_path, Options(toolchain=Compiler.GCC, weights=Weights.FLASH, code=CodeIn.RAM))
    board, bytes_ = load_board("pico"), image.flash.weights
    need = board.chip.stack_bytes + STATIC + image.ram.arena + image.ram.code + bytes_ + 2 * SECTION + SLACK + 256
    source = from_module(cnn(), (cnn_input(),), "cnn")
    options = Options(toolchain=Compiler.GCC, weights=Weights.RAM, code=CodeIn.RAM)
    compiled = pipeline.compile_source(source, with_sram(board, need), options)
    assert set(compiled.plan.layout.copies) == {c.name for c in compiled.plan.layout.constants}
    pipeline.build_image(compiled, tmp_path / "small")


def with_sram(board: Board, size: int) -> Board:
    """Return the board with that much RAM, all of it in one bank."""
    sizes = {"SRAM": size, "SCRATCH": 16}
    memories = tuple(replace(m, size=sizes.get(m.name, m.size)) for m in board.chip.memories)
    return replace(board, chip=replace(board.chip, memories=memories))


def test_automatic_copies_leave_room_for_code(tmp_path: Path) -> None:
    """The code is larger than what such copies leave for later additions."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Conv2d(8 + i, 9 + i, 3, padding=1) for i in range(16)))
    source, board = from_module(layers, (torch.randn(1, 8, 2, 2),), "net"), load_board("pico")
    options = Options(toolchain=Compiler.GCC, weights=Weights.FLASH, code=CodeIn.RAM)
    image = pipeline.build_image(pipeline.compile_source(source, board, options), tmp_path)
    small = with_sram(board, board.chip.stack_bytes + STATIC + image.ram.arena + image.ram.code + 2 * SECTION + SLACK)
    assert image.ram.code > small.chip.memory("SRAM").size // 4 + STATIC
    compiled = pipeline.compile_source(source, small, replace(options, weights=None))
    assert pipeline.build_image(compiled, tmp_path / "small").ram.code >= image.ram.code


def test_a_chip_whose_flash_is_as_fast(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="--code ram gains nothing on mps2-an386") as caught:
        ran("mps2-an386", tmp_path, Options(code=CodeIn.RAM))
    assert caught.value.have == ("CODE is as fast as RAM",)

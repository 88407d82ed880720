"""Buffers in several banks of RAM: as the user says, and where one bank is too small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.frontends import Source, from_module
from baretorch.options import Compiler, Options
from baretorch.passes.order import lower_graph
from baretorch.plan import make_plan
from baretorch.plan.types import Bank, Plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.models import cnn, cnn_input

M55 = load_board("mps3-an547")  # DTCM for data, and SRAM


def source() -> Source:
    return from_module(cnn(), (cnn_input(),), "cnn")


def plan(board: Board, **elsewhere: str) -> Plan:
    return make_plan(lower_graph(source().graph), board, Options(place=elsewhere))


def smaller(board: Board, bank: str, size: int) -> Board:
    """Return the board with `size` bytes for buffers in a bank."""
    size += board.chip.stack_bytes if bank == board.chip.data else 0
    memories = tuple(replace(m, size=size) if m.name == bank else m for m in board.chip.memories)
    return replace(board, chip=replace(board.chip, memories=memories))


def test_everything_is_in_the_bank_of_data() -> None:
    assert plan(M55).layout.banks == (Bank("DTCM", plan(M55).arena, home=True),)


def test_the_user_selects_the_bank_of_the_arena() -> None:
    moved = plan(M55, arena="SRAM")
    assert moved.layout.banks == (Bank("SRAM", plan(M55).arena, home=False),)
    assert {b.bank for b in moved.layout.buffers} == {"SRAM"}


def test_the_user_selects_the_bank_of_a_layer() -> None:
    usual = plan(M55)
    name = usual.steps[0].call.y.name
    moved = plan(M55, **{name: "SRAM"})
    assert [b.name for b in moved.layout.buffers if b.bank == "SRAM"] == [name]
    assert moved.layout.banks[1] == Bank("SRAM", moved.layout.buffer(name).size, home=False)
    assert moved.layout.banks[0].size < usual.arena


def test_unknown_names() -> None:
    with pytest.raises(CompileError) as bank:
        plan(M55, arena="AXISRAM")
    assert bank.value.render() == ("error: mps3-an547 has no bank of RAM called AXISRAM\n  need  DTCM or SRAM")
    with pytest.raises(CompileError, match="no layer is called features"):
        plan(M55, features="SRAM")


def test_what_one_bank_cannot_hold_goes_to_another() -> None:
    need = plan(M55).arena
    small = smaller(M55, "DTCM", need - 100)
    split = plan(small)
    assert [b.name for b in split.layout.banks] == ["DTCM", "SRAM"]
    assert split.layout.banks[0].size <= need - 100


def test_what_no_bank_can_hold_is_refused() -> None:
    with pytest.raises(CompileError, match=r"DTCM is .* bytes too small"):
        plan(smaller(smaller(M55, "DTCM", 100), "SRAM", 100))


def test_the_image_computes_the_same(tmp_path: Path) -> None:
    board = smaller(M55, "DTCM", 1024)
    compiled = pipeline.compile_source(source(), board, Options(toolchain=Compiler.GCC))
    assert {b.bank for b in compiled.plan.layout.buffers} == {"DTCM", "SRAM"}
    image = pipeline.build_image(compiled, tmp_path)
    run = pipeline.run_image(compiled, image)
    expected = compiled.source.expected
    assert expected is not None
    np.testing.assert_allclose(run.outputs[0].reshape(expected[0].shape), expected[0], rtol=1e-4, atol=1e-5)
    assert "IN(arena_sram, " in (tmp_path / "model.c").read_text()

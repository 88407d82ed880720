"""Inputs and outputs that stay in the caller's buffers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from baretorch.errors import InternalError
from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Builder, DType, interpret
from baretorch.ir.io import store_inputs
from baretorch.ops.elementwise import Clamp
from baretorch.ops.move import Slice
from baretorch.options import Buffers, Options
from baretorch.passes.order import lower_graph
from baretorch.pipeline import build_image, compile_graph, compile_source, run_image
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.schedule import one_by_one
from baretorch.targets.boards import load_board
from tests.models import cnn, cnn_input

BOARD = load_board("mps2-an386")
DIRECT = Options(buffers=Buffers.CALLER)


def source() -> Source:
    return from_module(cnn(), (cnn_input(),), "cnn")


def test_they_take_no_arena() -> None:
    graph = lower_graph(source().graph)
    plan = make_plan(graph, BOARD, DIRECT)
    assert plan.layout.lent == {*graph.inputs, *(o.storage for o in plan.outputs)}
    assert plan.layout.lent.isdisjoint(b.name for b in plan.layout.buffers)
    assert plan.arena <= make_plan(graph, BOARD).arena


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_the_image_answers_the_same(board: str, tmp_path: Path) -> None:
    compiled = compile_source(source(), load_board(board), DIRECT)
    assert "must not be NULL" in compiled.c.files["model.h"]
    assert "__builtin_memcpy" not in compiled.c.files["model.c"]
    run = run_image(compiled, build_image(compiled, tmp_path))
    want = interpret(compiled.graph, store_inputs(compiled.graph, compiled.source.examples))
    for name, output in zip(compiled.graph.outputs, run.outputs, strict=True):
        assert abs(output - want[name]).max() < 1e-5


def test_an_empty_output_reads_no_input(tmp_path: Path) -> None:
    """The C compiler warns about parameters that a function does not use."""
    b = Builder("none")
    x = b.input("x", (2, 4), DType.FLOAT32)
    compiled = compile_graph(source(), b.graph([x], [b.add(Slice(1, 4, 4), x)]), load_board("host"), DIRECT)
    build_image(compiled, tmp_path)


def test_an_input_that_is_an_output_is_copied() -> None:
    b = Builder("same")
    x = b.input("x", (1, 4), DType.FLOAT32)
    y = b.add(Clamp(0.0, 1.0), x, name="y")
    plan = make_plan(b.graph([x], [x, y]), BOARD, DIRECT)
    assert plan.layout.lent == {"y"}


def test_the_judge_rejects_writes_to_an_input() -> None:
    b = Builder("chain")
    x = b.input("x", (1, 4), DType.FLOAT32)
    y = b.add(Clamp(0.0, 1.0), x, name="y")
    plan = make_plan(b.graph([x], [y]), BOARD, DIRECT)
    (step,) = plan.steps
    wrong = replace(step, operands=(step.operands[0], replace(step.operands[0], tensor="y")))
    with pytest.raises(InternalError, match="writes to the caller's input"):
        check_plan(replace(plan, schedule=one_by_one([wrong])))


def test_a_model_that_needs_no_arena(tmp_path: Path) -> None:
    line = from_module(nn.Linear(4, 2).eval(), (torch.ones(1, 4),), "line")
    compiled = compile_source(line, load_board("host"), Options(buffers=Buffers.CALLER))
    assert compiled.plan.arena == 0
    build_image(compiled, tmp_path)

"""Layers that go from the last byte to the first: a row of layers stays where it is in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.errors import InternalError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, interpret
from baretorch.ops.helpers.kernel import Lattice
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.passes.order import lower_graph
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.memory.lifetimes import choose_directions
from baretorch.plan.memory.offsets import place_buffers
from baretorch.plan.schedule import Phase
from baretorch.plan.types import Buffer, Overlap, Plan
from baretorch.report.terminal.model import plan_text
from baretorch.targets.boards import load_board
from tests.plan.test_plan import simulate

CHANNELS, SIDE = 16, 12
ROW = SIDE * CHANNELS * 4


def separable(blocks: int) -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(blocks):
        layers += [nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS), nn.ReLU()]
        layers += [nn.Conv2d(CHANNELS, CHANNELS, 1), nn.ReLU()]
    return nn.Sequential(*layers)


def planned(board: str, blocks: int = 5) -> Plan:
    x = torch.randn(1, CHANNELS, SIDE, SIDE).to(memory_format=torch.channels_last)
    return make_plan(lower_graph(from_module(separable(blocks), (x,), "separable").graph), load_board(board))


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_separable_convolutions_take_no_more_memory_the_more_there_are(board: str) -> None:
    few, many = planned(board, 2), planned(board, 5)
    assert few.arena == many.arena <= SIDE * ROW + ROW + 64 + CHANNELS * 4
    assert any(step.back for step in many.steps) and not all(step.back for step in many.steps)


def test_the_plan_names_the_function_that_goes_back() -> None:
    assert "bt_conv2d_back_f32_fpu(" in plan_text(planned("mps2-an386"))


def test_who_saves_nothing_by_it_does_not_go_back() -> None:
    x, y = Buffer("x", 8, -1, 0), Buffer("y", 8, 0, 1)
    for behind, offsets in ((4, [4, 0]), (0, [0, 0])):
        placed, arena, optimal = place_buffers([x, y], "ram", overlaps=[Overlap("x", "y", 4, behind)])
        assert [b.offset for b in placed] == offsets and arena == 8 + offsets[0] and optimal


def test_no_byte_is_overwritten_that_is_still_read() -> None:
    plan = planned("mps2-an386")
    x = np.random.default_rng(0).standard_normal(plan.graph[plan.graph.inputs[0]].shape).astype(np.float32)
    (have,) = simulate(plan, [x])
    want = interpret(plan.graph, [x])[plan.graph.outputs[0]]
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_the_judge_finds_a_step_that_goes_the_wrong_way() -> None:
    plan = planned("mps2-an386")
    number = next(i for i, step in enumerate(plan.steps) if step.back)
    phases = list(plan.phases)
    phases[number] = Phase((replace(plan.steps[number], back=False),))
    with pytest.raises(InternalError, match="overlap in phase"):
        check_plan(replace(plan, schedule=replace(plan.schedule, phases=tuple(phases))))


def test_what_goes_back_is_found_again() -> None:
    """Where buffers are placed once more, steps have a direction already."""
    plan = planned("mps2-an386")
    again = choose_directions(plan.schedule, plan.layout.buffers)
    assert [step.back for step in again.steps] == [step.back for step in plan.steps]


def depthwise(width: int = 8, channels: int = 12) -> Graph:
    """Return an int8 model of three depthwise layers."""
    numbers = np.random.default_rng(0).integers
    b = Builder()
    y = x = b.input("x", (1, 9, width, channels), DType.INT8)
    for i in range(3):
        weight = b.const(f"w{i}", numbers(-9, 9, (channels, 3, 3, 1)).astype(np.int8))
        bias = b.const(f"b{i}", numbers(-9, 9, channels).astype(np.int32))
        factor = b.const(f"m{i}", np.full(channels, 1 << 28, np.int32))
        op = QConv2d(padding=(1, 1, 1, 1), groups=channels, x_zero=3, zero=3)
        y = b.add(op, y, weight, bias, factor)
    return b.graph([x], [y])


def test_channel_by_channel_one_row_is_enough() -> None:
    """Where outputs lie whole pixels before their inputs; 8 pixels of 12 bytes are a row."""
    graph = depthwise()
    plan = make_plan(graph, load_board("mps2-an385-v6m"))
    (scratch,) = {step.scratch.size for step in plan.steps if step.scratch}
    lie = [plan.layout.buffer(step.writes[0].storage).offset for step in plan.steps]
    first = plan.layout.buffer(plan.inputs[0].storage).offset
    assert [a - b for a, b in pairwise([first, *lie])] == [96, 96, 96]
    assert plan.arena <= 9 * 96 + 3 * 96 + scratch
    x = np.random.default_rng(1).integers(-128, 128, graph[graph.inputs[0]].shape).astype(np.int8)
    (have,) = simulate(plan, [x])
    np.testing.assert_array_equal(have, interpret(graph, [x])[graph.outputs[0]])


@pytest.mark.parametrize("moved", [4, -12])
def test_the_judge_finds_what_is_out_of_step_or_too_near(moved: int) -> None:
    plan = make_plan(depthwise(), load_board("mps2-an385-v6m"))
    first = plan.inputs[0].storage
    buffers = tuple(replace(b, offset=b.offset + moved) if b.name == first else b for b in plan.layout.buffers)
    banks = tuple(replace(bank, size=bank.size + 64) for bank in plan.layout.banks)
    with pytest.raises(InternalError, match="overlap in phase 0"):
        check_plan(replace(plan, layout=replace(plan.layout, buffers=buffers, banks=banks)))


class Beside(nn.Module):
    """A layer that reads a part of a buffer and writes another part after it."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, kernel, padding=kernel // 2)
        self.last = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        last: torch.Tensor = self.last(torch.cat([x, self.second(x)], 2))
        return last


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_a_layer_next_to_its_input_in_a_buffer_does_not_go_back(board: str, kernel: int) -> None:
    x = torch.randn(1, 8, 6, 6).to(memory_format=torch.channels_last)
    plan = make_plan(lower_graph(from_module(Beside(kernel), (x,), "beside").graph), load_board(board))
    beside = plan.steps[1]
    assert beside.kernel.back and beside.reads[0].storage == beside.writes[0].storage
    assert not any(step.back for step in plan.steps)


def test_the_judge_finds_a_layer_that_cannot_go_back() -> None:
    x = torch.randn(1, 8, 6, 6).to(memory_format=torch.channels_last)
    plan = make_plan(lower_graph(from_module(Beside(3), (x,), "beside").graph), load_board("mps2-an386"))
    phases = list(plan.phases)
    phases[1] = Phase((replace(plan.steps[1], back=True),))
    with pytest.raises(InternalError, match="cannot go back"):
        check_plan(replace(plan, schedule=replace(plan.schedule, phases=tuple(phases))))


@pytest.mark.parametrize(
    ("distance", "behind", "nearer", "most"),
    [
        (4, None, None, 6),
        (None, 2, None, 8),
        (4, 2, None, 8),
        (None, None, None, 0),
        (40, 40, None, 0),
        (8, None, Lattice(3, 3), 7),
    ],
)
def test_how_many_bytes_two_buffers_may_share(
    distance: int | None, behind: int | None, nearer: Lattice | None, most: int
) -> None:
    assert Overlap("x", "y", distance, behind, nearer).most(10, 10) == most

"""Layers whose weights and windows do not fit the scratchpad take their input channels in parts: the same bits as on
the host, and a plan in which sums are missing, old or overwritten is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.emit import emit
from baretorch.errors import InternalError
from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Shape, interpret
from baretorch.ir.verify import verify
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.measure.profile import make_profile
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qsums import QFromSums, QSums
from baretorch.ops.layout import Reshape
from baretorch.options import Compiler, Io, Options, Units
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.cluster.channel_parts import cut_places, split_channels
from baretorch.plan.schedule import Phase, Step
from baretorch.plan.types import Plan
from baretorch.report.page.cluster import split_axes
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model
from tests.plan.test_banks import smaller

BOARD = smaller(load_board("cluster8"), "L1", 24 << 10)
OPTIONS = Options(io=Io.INT8, units=Units.OFF, cores=8, toolchain=Compiler.GCC)


def layer(b: Builder, op: Op, x: str, weight: Shape, factor: float, name: str) -> str:
    rng = np.random.default_rng(len(b.tensors))
    taps = b.const(f"{name}.weight", rng.integers(-127, 128, weight).astype(np.int8))
    bias = b.const(f"{name}.bias", rng.integers(-9000, 9000, weight[0]).astype(np.int32))
    factors = b.const(f"{name}.multiplier", np.full(weight[0], factor * 2.0**32).astype(np.int32))
    return b.add(op, x, taps, bias, factors, name=name)


@cache
def graph() -> Graph:
    """A convolution whose windows are too large for eight cores, and a linear layer that fits."""
    b = Builder("many")
    x = b.input("x", (1, 4, 4, 8), DType.INT8)
    wide = layer(b, QConv2d(1, 3), x, (48, 1, 1, 8), 0.004, "wide")
    same = layer(b, QConv2d(3, -5, padding=(2, 2, 2, 2)), wide, (12, 5, 5, 48), 0.0003, "same")
    flat = b.add(Reshape((1, 192)), same)
    return verify(b.graph((x,), (layer(b, QLinear(1, lo=-100), flat, (9, 192), 0.001, "last"),)))


def inputs() -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.integers(-128, 128, graph()[name].shape).astype(np.int8) for name in graph().inputs]


@cache
def plan() -> Plan:
    return make_plan(graph(), BOARD, OPTIONS)


@pytest.mark.parametrize("counts", [{"same": 3}, {"last": 7}, {"wide": 2, "same": 12, "last": 48}])
def test_a_graph_in_parts_computes_the_same(counts: dict[str, int]) -> None:
    parts = verify(split_channels(graph(), counts))
    assert sum(isinstance(node.op, QSums) for node in parts.nodes) == sum(counts.values())
    want, got = interpret(graph(), inputs()), interpret(parts, inputs())
    assert parts.outputs == graph().outputs
    assert all((got[name] == want[name]).all() for name in parts.outputs)


def test_what_is_pooled_is_pooled_after_the_sums() -> None:
    b = Builder("pooled")
    x = b.input("x", (1, 7, 6, 8), DType.INT8)
    y = layer(b, QConv2d(3, -5, padding=(1, 1, 1, 1), pool=(2, 2)), x, (5, 3, 3, 8), 0.001, "y")
    whole = b.graph((x,), (y,))
    image = np.random.default_rng(2).integers(-128, 128, (1, 7, 6, 8)).astype(np.int8)
    (want,), (got,) = (interpret(g, [image])[y] for g in (whole, verify(split_channels(whole, {"y": 2}))))
    assert (got == want).all()


def test_parts_are_whole_words() -> None:
    assert cut_places(10, 2) == [0, 4, 10] and cut_places(64, 3) == [0, 20, 40, 64]
    assert cut_places(7, 5) == [0, 4, 7]


def test_layers_that_do_not_fit_are_reported() -> None:
    tiles = plan().tiles
    assert tiles is not None
    told = {layer.layer: layer for layer in tiles.layers}
    assert {told["wide"].axis, told["last"].axis} == {""}, "they fit"
    steps = [step for step in plan().steps if step.layer == "same"]
    sums = [step for step in steps if isinstance(step.call.op, QSums)]
    assert told["same"].axis == "input channels" and told["same"].count == len(phases_of(plan(), "same")) + 1 > 3
    assert {step.executor for step in sums} >= set(plan().schedule.cores[:4])
    assert len({step.writes[0].storage for step in sums}) == 1, "in place"
    fits = make_plan(graph(), load_board("cluster4-soc"), replace(OPTIONS, cores=4))
    assert not any(isinstance(step.call.op, QSums) for step in fits.steps)


def test_the_same_bits_on_eight_cores(tmp_path: Path) -> None:
    found = {"forward": plan()}
    c = emit("many", found, team=True)
    source = Source("many", {"forward": graph()}, tuple(inputs()))
    of = pipeline.Compiled(pipeline.LoweredModel(source, {"forward": graph()}), BOARD, found, c, OPTIONS)
    machine = open_machine(pipeline.build_image(of, tmp_path), of.c.run)
    try:
        got = call_image(Link(machine), graph(), inputs())
    finally:
        machine.close()
    want = interpret(graph(), inputs(), keep=True)
    assert all((y == want[name]).all() for name, y in zip(graph().outputs, got, strict=True))
    assert len(np.unique(want["same"])) > 50 and len(np.unique(want["last"])) > 4


def phases_of(plan: Plan, name: str) -> list[int]:
    """Those that add up sums of a layer."""
    return [t for t, p in enumerate(plan.phases) if p.steps[0].layer == name and isinstance(p.steps[0].call.op, QSums)]


def with_steps(plan: Plan, changed: dict[int, tuple[Step, ...]]) -> Plan:
    """Return the schedule with other steps in some phases, and unchanged waits."""

    def now(time: int, phase: Phase) -> Phase:
        steps = changed.get(time, phase.steps)
        return replace(
            phase, steps=tuple(replace(s, awaits=o.awaits) for s, o in zip(steps, phase.steps, strict=False))
        )

    phases = tuple(now(time, phase) for time, phase in enumerate(plan.phases))
    return replace(plan, schedule=replace(plan.schedule, phases=phases))


def without_the_first(plan: Plan) -> Plan:
    """Another layer is made twice instead."""
    (first, *_), before = phases_of(plan, "same"), plan.phases[0].steps
    return with_steps(plan, {first: before})


def one_core_idle(plan: Plan) -> Plan:
    time = phases_of(plan, "same")[1]
    return with_steps(plan, {time: plan.phases[time].steps[:-1]})


def swapped(plan: Plan) -> Plan:
    a, b = phases_of(plan, "same")[1:3]
    resident = [replace(p, steps=tuple(map(_resident, p.steps))) for p in (plan.phases[a], plan.phases[b])]
    return with_steps(plan, {a: resident[1].steps, b: resident[0].steps})


def _resident(step: Step) -> Step:
    """Return the schedule with constants where they are stored, as if no copies were needed."""
    return replace(step, operands=tuple(replace(o, buffer="") if o.constant else o for o in step.operands))


def overlapping(plan: Plan) -> Plan:
    """Place the input of the layer where its sums are."""
    sums = plan.steps[[s.layer for s in plan.steps].index("same")].writes[0].storage
    at = plan.layout.buffer(sums).offset
    moved = tuple(replace(b, offset=at) if b.name == "wide" else b for b in plan.layout.buffers)
    return replace(plan, layout=replace(plan.layout, buffers=moved))


def without_channels(plan: Plan) -> Plan:
    """The last part is taken for one that begins earlier."""
    nodes = list(plan.graph.nodes)
    last = max(i for i, node in enumerate(nodes) if isinstance(node.op, QSums) and node.op.of == "same")
    op = nodes[last].op
    assert isinstance(op, QSums)
    nodes[last] = replace(nodes[last], op=replace(op, start=op.start - 4))
    return replace(plan, graph=replace(plan.graph, nodes=tuple(nodes)))


WRONG: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "the first part is missing": (without_the_first, "which is not there"),
    "a core has made nothing": (one_core_idle, "which is not there"),
    "two parts are swapped": (swapped, "which is not there"),
    "sums are overwritten": (overlapping, "overlap in phase"),
    "channels are left out": (without_channels, "not of those after"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_judge(wrong: str) -> None:
    change, what = WRONG[wrong]
    check_plan(plan())
    with pytest.raises(InternalError, match=what):
        check_plan(change(plan()))


def net(inputs: nn.Module, shape: tuple[int, ...], name: str) -> Source:
    torch.manual_seed(0)
    x = torch.randn(*shape).to(memory_format=torch.channels_last)
    return int8_model(from_module(inputs, (x,), name), [(x,)]).narrow


SLOW: dict[str, Callable[[], Source]] = {
    "a linear layer of 20,480 inputs": lambda: net(
        nn.Sequential(nn.Conv2d(3, 20, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(20480, 16)), (1, 3, 64, 64), "lin"
    ),
    "one whose inputs lie in L2": lambda: net(
        nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(65536, 8)), (1, 3, 64, 64), "far"
    ),
    "a convolution of 512 channels": lambda: net(
        nn.Sequential(nn.Conv2d(16, 512, 1), nn.ReLU(), nn.Conv2d(512, 32, 3, padding=1)), (1, 16, 8, 8), "conv"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", SLOW)
def test_whole_models(which: str, tmp_path: Path) -> None:
    source, options = SLOW[which](), Options(io=Io.INT8, units=Units.OFF)
    answers = {}
    for board, cores in (("host", None), ("cluster8", 1), ("cluster8", None), ("cluster4-soc", None)):
        of = compile_model(source, load_board(board), replace(options, cores=cores))
        image = pipeline.build_image(of, tmp_path / f"{board}{cores}")
        run = pipeline.run_image(of, image)
        answers[board, cores] = b"".join(y.tobytes() for y in (*run.first, *run.outputs))
        if (board, cores) == ("cluster8", None):
            tiles = of.plan.tiles
            assert tiles is not None and "input channels" in {layer.axis for layer in tiles.layers}
            assert any(isinstance(step.call.op, QFromSums) for step in of.plan.steps)
            traced = make_profile(of, image, run).traced
            assert traced is not None
            (seen,) = [found for found in traced.layers if isinstance(found.steps[0].call.op, QSums)]
            told = next(found for found in tiles.layers if found.layer == seen.steps[0].layer)
            assert seen.tiles == told.count and split_axes(traced, seen) in ("rows", "channels", "rows, channels")
            assert compile_model(source, load_board(board), options).c == of.c, "the same every time"
            assert run.emulator_cycles is not None and run.emulator_cycles < 750_000
    assert len(set(answers.values())) == 1


def test_a_part_is_one_tile_where_that_can_be() -> None:
    """Else it is made in two, one after the other, in which half of the cores have no channels."""
    b = Builder("long")
    x = b.input("x", (1, 10240), DType.INT8)
    board = load_board("cluster4-soc")
    found = make_plan(
        verify(b.graph((x,), (layer(b, QLinear(1), x, (16, 10240), 0.0001, "y"),))), board, replace(OPTIONS, cores=4)
    )
    sums = [phase.main.call.y.name for phase in found.phases if isinstance(phase.main.call.op, QSums)]
    assert len(sums) == len(set(sums)) > 6

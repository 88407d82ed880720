"""Weights that are copied during a run: the judge finds what would go wrong, and the answers are the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.errors import CompileError, InternalError
from baretorch.frontends import Source, from_methods, from_module
from baretorch.machines.run import Run
from baretorch.measure.cycles import time_of
from baretorch.measure.profile import make_profile
from baretorch.options import Compiler, Options, Weights
from baretorch.pipeline import Compiled
from baretorch.plan.check.plan import check_plan
from baretorch.plan.schedule import Phase, Step
from baretorch.plan.types import Plan
from baretorch.plan.weights.stream import stream_weights
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.plan.test_banks import smaller
from tests.test_structure import coder

PICO = load_board("pico")
SIZES = (16, *[48] * 7, 8)


def source() -> Source:
    torch.manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in pairwise(SIZES)]
    return from_module(nn.Sequential(*layers).eval(), (torch.randn(1, SIZES[0]),), "m")


def board(name: str = "pico", room: int = 36 << 10) -> Board:
    """Return a board with room for three of the six large layers, in addition to the reserve."""
    return smaller(load_board(name), "SRAM", room)


def compiled(on: Board, weights: Weights = Weights.STREAM) -> Compiled:
    return pipeline.compile_source(source(), on, Options(toolchain=Compiler.GCC, weights=weights))


def ran(made: Compiled, folder: Path) -> tuple[Run, float]:
    image = pipeline.build_image(made, folder / str(made.options.weights))
    run = pipeline.run_image(made, image)
    time = time_of(image, run)
    assert time is not None and time.flash is not None
    profile = make_profile(made, image, run)
    assert [layer.name for layer in profile.layers] == list("01234567")
    assert sum(layer.time.all.expected for layer in profile.layers) <= time.all.expected
    return run, time.flash.waits.expected


@pytest.mark.parametrize("name", ["pico", "pico2w"])
def test_the_same_bits_in_less_time(name: str, tmp_path: Path) -> None:
    (from_flash, waits), (run, less) = (
        ran(compiled(board(name), weights), tmp_path) for weights in (Weights.FLASH, Weights.STREAM)
    )
    np.testing.assert_array_equal(run.outputs[0], from_flash.outputs[0])
    assert less < (waits / 2 if name == "pico" else waits)  # the other computes faster than flash gives
    assert run.flash is not None and sum(r.copied != 0 for r in run.flash) > 2
    assert run.instructions is not None and from_flash.instructions is not None
    assert 0 < run.instructions - from_flash.instructions < 200


def test_by_itself_if_it_pays() -> None:
    assert compiled(board(), Weights.AUTO).plan.schedule.copies
    assert not compiled(PICO, Weights.AUTO).plan.schedule.copies, "all fits in RAM"
    assert not compiled(board(), Weights.RAM).plan.schedule.copies
    files = compiled(board(), Weights.AUTO).c.files
    assert "bt_stream_begin(" in files["model.c"] and "kernels/stream.h" in files
    assert "kernels/stream.h" not in compiled(PICO, Weights.AUTO).c.files


def plan(chosen: tuple[int, ...] = (1, 2, 3)) -> Plan:
    return stream_weights(compiled(PICO, Weights.FLASH).plan, chosen, PICO.chip)


def test_buffers_take_turns() -> None:
    made = plan((1, 2, 3, 4))
    sizes = [copy.target.size for copy in made.schedule.copies.values()]
    assert len(sizes) == 4 and made.arena < 3 * sizes[0], "not all of them have a place of their own"
    begins = [n for n, phase in enumerate(made.phases) for _ in phase.copies]
    assert begins == [0, 1, 2, 3], "each as soon as the one before is awaited"


def with_phase(made: Plan, number: int, change: Callable[[Phase], Phase]) -> Plan:
    phases = list(made.phases)
    phases[number] = change(phases[number])
    return replace(made, schedule=replace(made.schedule, phases=tuple(phases)))


def with_step(made: Plan, number: int, change: Callable[[Step], Step]) -> Plan:
    return with_phase(made, number, lambda phase: replace(phase, steps=(change(phase.steps[0]),)))


def without_wait(made: Plan) -> Plan:
    return with_step(made, 3, lambda step: replace(step, awaits=()))


def waiting_late(made: Plan) -> Plan:
    (name,) = made.phases[3].steps[0].awaits
    return with_step(without_wait(made), 4, lambda step: replace(step, awaits=(name,)))


def begun_early(made: Plan) -> Plan:
    (copy,) = made.phases[1].copies
    made = with_phase(made, 1, lambda phase: replace(phase, copies=()))
    return with_phase(made, 0, lambda phase: replace(phase, copies=(*phase.copies, copy)))


def of_another(made: Plan) -> Plan:
    other = made.phases[1].steps[0].awaits[0]

    def change(step: Step) -> Step:
        return replace(step, operands=tuple(replace(o, buffer=other) if o.buffer else o for o in step.operands))

    return with_step(made, 3, change)


def too_small(made: Plan) -> Plan:
    (copy,) = made.phases[0].copies
    shorter = replace(copy, target=replace(copy.target, size=copy.target.size - 4))
    return with_phase(made, 0, lambda phase: replace(phase, copies=(shorter,)))


def on_an_activation(made: Plan) -> Plan:
    """Place a buffer where the concurrent step writes, while both are alive."""
    (copy,) = made.phases[1].copies
    place = made.layout.buffer(copy.name).offset
    y = made.phases[1].steps[0].writes[0].storage
    buffers = tuple(replace(b, offset=place) if b.name == y else b for b in made.layout.buffers)
    return replace(made, layout=replace(made.layout, buffers=buffers))


def dead_when_read(made: Plan) -> Plan:
    name = made.phases[3].steps[0].awaits[0]
    buffers = tuple(replace(b, last=b.last - 1) if b.name == name else b for b in made.layout.buffers)
    return replace(made, layout=replace(made.layout, buffers=buffers))


def never_awaited(made: Plan) -> Plan:
    (copy,) = made.phases[2].copies
    return with_phase(without_wait(made), 2, lambda phase: replace(phase, copies=(replace(copy, name="x"),)))


WRONG: dict[Callable[[Plan], Plan], str] = {
    without_wait: "where it is not yet",
    waiting_late: "where it is not yet",
    begun_early: "begins before .* was awaited",
    of_another: "where it is not yet",
    too_small: "copies 9216 of 9216 bytes to 9212",
    on_an_activation: "overlap in phase",
    dead_when_read: "is not there in phase 3",
    never_awaited: "where it is not yet",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_the_judge(wrong: Callable[[Plan], Plan]) -> None:
    made = plan()
    check_plan(made)
    with pytest.raises(InternalError, match=WRONG[wrong]):
        check_plan(wrong(made))


def test_the_judge_of_unread_copies() -> None:
    """A copy at the end, and a wait for nothing."""
    made = plan((1, 2))
    (copy,) = made.phases[1].copies
    more = replace(copy, name="x")
    buffers = tuple(replace(b, last=7) if b.name == copy.target.storage else b for b in made.layout.buffers)
    longer = with_phase(made, 3, lambda phase: replace(phase, copies=(more,)))
    longer = replace(longer, layout=replace(made.layout, buffers=buffers))
    with pytest.raises(InternalError, match=r"no step awaits x|is being written|overlap"):
        check_plan(longer)
    with pytest.raises(InternalError, match="awaits the copy x, which is not under way"):
        check_plan(with_step(made, 3, lambda step: replace(step, awaits=("x",))))


def test_the_judge_looks_at_bytes() -> None:
    """Two buffers that never live together by their own account, and do."""
    made = plan((2,))
    (copy,) = made.phases[0].copies
    y = made.phases[0].steps[0].writes[0].storage
    place = made.layout.buffer(y).offset
    moved = [replace(b, offset=place, first=1) if b.name == copy.name else b for b in made.layout.buffers]
    moved = [replace(b, last=0) if b.name == y else b for b in moved]
    wrong = replace(made, layout=replace(made.layout, buffers=tuple(moved)))
    with pytest.raises(InternalError):
        check_plan(wrong)


@pytest.mark.parametrize(
    ("on", "options", "text"),
    [
        ("mps2-an386", {}, "--weights stream gains nothing on mps2-an386"),
        ("nucleo-h743zi", {}, "nucleo-h743zi has no engine for it that is known here"),
        ("pico", {"cores": 2}, "for models of one method without branches, on one core"),
    ],
)
def test_where_it_cannot_be(on: str, options: dict[str, int], text: str) -> None:
    with pytest.raises(CompileError, match=text):
        pipeline.compile_source(source(), load_board(on), Options(weights=Weights.STREAM, **options))


def test_nothing_to_stream() -> None:
    tiny = from_module(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).eval(), (torch.randn(1, 4),), "m")
    with pytest.raises(CompileError, match="m has no weights to stream on pico"):
        pipeline.compile_source(tiny, PICO, Options(weights=Weights.STREAM))


def test_models_of_several_methods() -> None:
    module, methods = coder()
    both = from_methods(module, methods, "coder", "encode")
    with pytest.raises(CompileError, match="of one method"):
        pipeline.compile_source(both, PICO, Options(weights=Weights.STREAM))


def test_others_have_no_driver() -> None:
    with pytest.raises(CompileError, match="C that others build has no driver"):
        Options(weights=Weights.STREAM).for_own_build()


def test_a_second_opinion(tmp_path: Path) -> None:
    """rp2040js has another DMA, and counts as many instructions."""
    made = compiled(board())
    image = pipeline.build_image(made, tmp_path)
    runs = [
        pipeline.run_image(replace(made, options=replace(made.options, emulator=emulator)), image)
        for emulator in ("unicorn", "rp2040js")
    ]
    np.testing.assert_array_equal(runs[0].outputs[0], runs[1].outputs[0])
    assert runs[0].instructions == runs[1].instructions

"""Activations that do not fit the scratchpad come and go by DMA, in tiles of rows: the same bits as on the host, and
what goes wrong is seen, by the judge of plans and by the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.errors import CompileError, InternalError
from baretorch.frontends import Source, from_module
from baretorch.machines.types import DeviceFault
from baretorch.options import Io, Options, Units
from baretorch.plan.capacity import stored_by_name
from baretorch.plan.check.plan import check_plan
from baretorch.plan.cluster.choose_tiles import TileSearch
from baretorch.plan.schedule import BackgroundCopy, Phase, Step
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model
from tests.plan.test_banks import smaller

BOARD = smaller(load_board("cluster8"), "L1", 32 << 10)
ALL = Options(io=Io.INT8, units=Units.OFF)


@cache
def source() -> Source:
    """Return a model whose second layer has an output that is too large to be stored together with its input."""
    torch.manual_seed(0)
    x = torch.randn(1, 4, 24, 24).to(memory_format=torch.channels_last)
    net = nn.Sequential(
        nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1, groups=32), nn.Conv2d(32, 16, 1), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 8),
    )  # fmt: skip
    return int8_model(from_module(net, (x,), "wide"), [(x,)]).narrow


@cache
def compiled() -> pipeline.Compiled:
    return compile_model(source(), BOARD, ALL)


def outputs(of: pipeline.Compiled, folder: Path) -> bytes:
    found = pipeline.run_image(of, pipeline.build_image(of, folder))
    return b"".join(y.tobytes() for y in (*found.first, *found.outputs))


def test_rows_come_and_go_while_the_cores_work(tmp_path: Path) -> None:
    of = compiled()
    tiles = of.plan.tiles
    assert tiles is not None
    image = pipeline.build_image(of, tmp_path / "all")
    run = pipeline.run_image(of, image)
    host = compile_model(source(), load_board("host"), ALL)
    assert b"".join(y.tobytes() for y in (*run.first, *run.outputs)) == outputs(host, tmp_path / "host")
    rows = {layer.layer: layer for layer in tiles.layers if layer.axis == "rows"}
    (made, read), large = rows.values(), 24 * 24 * 32
    assert made.count >= 3 and read.count >= 3 and 0 < max(made.buffers, read.buffers) < large
    assert tiles.moved > 2 * large, "they go, and come with what windows read of others"
    assert run.emulator_cycles is not None and abs(run.emulator_cycles / tiles.cycles - 1) < 0.25
    told = tiles.to_json()["layers"]
    assert isinstance(told, list) and [one["layer"] for one in told] == [layer.layer for layer in tiles.layers]
    assert {"layer": made.layer, "axis": "rows", "tiles": made.count}.items() <= told[1].items()


def test_what_cannot_be_stored_is_reported_before_tiles_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TileSearch, "best", lambda shop: pytest.fail("tiles were searched"))
    with pytest.raises(CompileError, match="the weights do not fit cluster8: CODE is") as caught:
        compile_model(source(), smaller(BOARD, BOARD.chip.code, 2 << 10), ALL)
    layers = {line.partition(".")[0] for line in caught.value.have[1:]}
    assert len(layers) == 3 and layers <= {"0", "2", "4", "5", "8"}


def test_weights_of_tiles_are_reported_with_their_layers() -> None:
    plan = compiled().plan
    named = {c.name for c in plan.layout.constants}
    assert any(name.startswith("tile") for name in named)
    stored = stored_by_name(plan)
    assert sum(stored.values()) == plan.weight_bytes()
    assert not any(name.startswith("tile") for name in stored) and {s.layer for s in plan.steps} & stored.keys()


class Residual(nn.Module):
    """A model in which a unit computes both operands of a sum. The sum is computed in place of the second."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 16, 1), nn.Conv2d(16, 8, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.a(x))
        found: torch.Tensor = self.c(torch.relu(self.b(x)) + x)
        return found


def test_a_sum_in_the_memory_of_its_input_has_buffers_for_both(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 4, 24, 24).to(memory_format=torch.channels_last)
    read = int8_model(from_module(Residual(), (x,), "sum"), [(x,)]).narrow
    options = replace(ALL, units=Units.AUTO)
    of = compile_model(read, smaller(load_board("cluster8"), "L1", 16 << 10), options)
    sums = [step for step in of.plan.steps if step.call.op.name == "qadd"]
    moved = [(x, y) for step in sums for x in step.reads for y in step.writes if x.buffer and x.storage == y.storage]
    assert moved and all(x.buffer != y.buffer for x, y in moved)
    host = compile_model(read, load_board("host"), ALL)
    assert outputs(of, tmp_path / "cluster") == outputs(host, tmp_path / "host")


def swapped(text: str) -> str:
    """Two buffers into which rows come at different times have changed their places."""
    into = re.findall(r"bt_team_copy\(\d+, (AT\(void, \d+\)), IN\(", text)
    first, second = list(dict.fromkeys(into))[:2]
    return text.replace(first + ", IN(", "?").replace(second + ", IN(", first + ", IN(").replace("?", second + ", IN(")


def unawaited(text: str) -> str:
    """Remove the wait for the rows that were copied last."""
    channel = re.findall(r"bt_team_copy\((\d+), AT\(void, \d+\), IN\(", text)[-1]
    head, tail = text.rsplit(f"    bt_team_await({channel});", 1)
    return head + tail


def unmet(text: str) -> str:
    """Core 0 begins to take rows home before the others have made them."""
    take = re.search(r"    bt_team_meet\(\);\n((?:    bt_team_copy\(.*\n)*?    bt_team_copy\(\d+, IN\()", text)
    assert take is not None
    return text[: take.start()] + take.group(1) + text[take.end() :]


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        (swapped, "an access to a byte that is being copied"),
        (unawaited, "an access to a byte that is being copied"),
        (unmet, "two cores touch the same byte between two barriers"),
    ],
)
def test_what_is_broken_is_seen_with_the_layers_name(broken: Callable[[str], str], what: str, tmp_path: Path) -> None:
    of = compiled()
    files = {**of.c.files, "model.c": broken(of.c.files["model.c"])}
    assert files != of.c.files
    changed = replace(of, c=replace(of.c, files=files))
    image = pipeline.build_image(changed, tmp_path)
    with pytest.raises(DeviceFault, match=what) as caught:
        pipeline.run_image(changed, image)
    assert caught.value.have[0] in ("in layer 2 of 6: 2", "in layer 3 of 6: 4")


def with_copy(
    plan: Plan,
    of: Callable[[BackgroundCopy], bool],
    change: Callable[[BackgroundCopy], BackgroundCopy | None],
    to: int = 0,
) -> Plan:
    """Return the schedule with the first such copy changed, and started some phases later."""
    phases = list(plan.phases)
    time = next(t for t, phase in enumerate(phases) if any(map(of, phase.copies)))
    copy = next(filter(of, phases[time].copies))
    phases[time] = replace(phases[time], copies=tuple(c for c in phases[time].copies if c is not copy))
    if (changed := change(copy)) is not None:
        phases[time + to] = replace(phases[time + to], copies=(*phases[time + to].copies, changed))
    return replace(plan, schedule=replace(plan.schedule, phases=tuple(phases)))


def comes(copy: BackgroundCopy) -> bool:
    return bool(copy.target.buffer)


def goes(copy: BackgroundCopy) -> bool:
    return bool(copy.source.buffer)


def elsewhere(copy: BackgroundCopy) -> BackgroundCopy:
    return replace(copy, source=replace(copy.source, offset=copy.source.offset + 4))


def shorter(copy: BackgroundCopy) -> BackgroundCopy:
    less = copy.source.size - 4
    return replace(copy, source=replace(copy.source, size=less), target=replace(copy.target, size=less))


def without_wait_for_what_goes(plan: Plan) -> Plan:
    gone = {copy.name for copy in plan.schedule.copies.values() if goes(copy)}

    def left(step: Step) -> Step:
        return replace(step, awaits=tuple(name for name in step.awaits if name not in gone))

    phases = tuple(replace(phase, steps=tuple(map(left, phase.steps))) for phase in plan.phases)
    return replace(plan, schedule=replace(plan.schedule, phases=phases))


def unmet_phase(plan: Plan) -> Plan:
    time = next(t for t, phase in enumerate(plan.phases) if any(map(goes, phase.copies)))

    def alone(phase: Phase) -> Phase:
        return replace(phase, meet=False, steps=tuple(replace(step, awaits=()) for step in phase.steps))

    phases = [alone(phase) if t == time else phase for t, phase in enumerate(plan.phases)]
    return replace(plan, schedule=replace(plan.schedule, phases=tuple(phases)))


WRONG: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "other rows come": (lambda p: with_copy(p, comes, elsewhere), "copies Operand"),
    "too few come": (lambda p: with_copy(p, comes, shorter), "beyond its end"),
    "too few go": (lambda p: with_copy(p, goes, shorter), "not all is at home"),
    "none come": (lambda p: with_copy(p, comes, lambda copy: None), "not under way"),
    "they go too early": (lambda p: with_copy(p, goes, lambda copy: copy, to=-1), "before all of it was made"),
    "nobody waits for what goes": (without_wait_for_what_goes, "not all is at home|before .* was awaited"),
    "others still make it": (unmet_phase, "may still touch|not under way|is not yet"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_judge(wrong: str) -> None:
    change, what = WRONG[wrong]
    check_plan(compiled().plan)
    with pytest.raises(InternalError, match=what):
        check_plan(change(compiled().plan))

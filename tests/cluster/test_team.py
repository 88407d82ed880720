"""Models on all cores of a cluster: the same bits as on one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.errors import InternalError
from baretorch.frontends import from_module
from baretorch.machines.run import Run
from baretorch.machines.types import DeviceFault
from baretorch.ops.helpers.executor import Executor
from baretorch.options import Io, Options, Units, Weights
from baretorch.pipeline import LoweredModel
from baretorch.plan.check.order import check_order
from baretorch.plan.cluster.choose_tiles import FIRST
from baretorch.plan.schedule import Phase, Schedule
from baretorch.plan.shares import with_meetings
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.models import compile_model, int8_file, int8_model
from tests.zoo.zoo import ZOO

ALL = Options(io=Io.INT8, units=Units.OFF)
ONE = replace(ALL, cores=1)


def small() -> LoweredModel:
    """Layers that are cut along rows, pixels and channels."""
    torch.manual_seed(0)
    x = torch.randn(1, 4, 9, 7).to(memory_format=torch.channels_last)
    net = nn.Sequential(
        nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.Conv2d(32, 48, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 64),
    )  # fmt: skip
    return int8_model(from_module(net, (x,), "small"), [(x,)]).narrow


@cache
def large() -> LoweredModel:
    """More weights than the scratchpad has room for."""
    torch.manual_seed(0)
    x = torch.randn(1, 96)
    net = nn.Sequential(nn.Linear(96, 320), nn.ReLU(), nn.Linear(320, 128), nn.ReLU(), nn.Linear(128, 64))
    return int8_model(from_module(net, (x,), "large"), [(x,)]).narrow


def run(source: LoweredModel, options: Options, folder: Path, board: str = "cluster8") -> tuple[pipeline.Compiled, Run]:
    compiled = compile_model(source, load_board(board), options)
    image = pipeline.build_image(compiled, folder)
    found = pipeline.run_image(compiled, image)
    assert board == "host" or 0 < found.stack_peak <= image.ram.stack
    return compiled, found


def same(a: Run, b: Run) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip((*a.first, *a.outputs), (*b.first, *b.outputs), strict=True))


def test_all_cores_give_the_bits_of_one(tmp_path: Path) -> None:
    source = small()
    _, one = run(source, ONE, tmp_path / "one")
    compiled, all_ = run(source, ALL, tmp_path / "all")
    assert same(one, all_) and one.cores is None and all_.cores is not None
    assert compiled.options.cores == len(all_.cores.instructions) == 8
    assert all_.emulator_cycles == all_.cores.critical_path
    assert one.emulator_cycles is not None and one.emulator_cycles > 2 * all_.cores.critical_path
    assert all(0 <= w < all_.cores.critical_path for w in all_.cores.waiting)


def test_all_cores_quantize_an_image_whose_channels_come_first(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 3, 16, 20)
    source = int8_model(from_module(nn.Conv2d(3, 8, 3), (x,), "image"), [(x,)]).narrow
    compiled, found = run(source, Options(units=Units.OFF), tmp_path / "all")
    shares = [step.call.y.count for step in compiled.plan.steps if step.call.op.name == "quantize"]
    assert shares == [x.numel() // 8] * 8
    assert same(found, run(source, Options(), tmp_path / "host", "host")[1])


def without_meetings(compiled: pipeline.Compiled, number: int) -> pipeline.Compiled:
    """One of the meetings between phases is missing in the C."""
    text = compiled.c.files["model.c"]
    parts = text.split("    bt_team_meet();\n")
    per_core = sum(phase.meet for phase in compiled.plan.phases)
    assert len(parts) > 8 * per_core
    kept = [
        p + ("" if i % per_core == number else "    bt_team_meet();\n") for i, p in enumerate(parts[: 7 * per_core])
    ]
    files = {**compiled.c.files, "model.c": "".join(kept) + "    bt_team_meet();\n".join(parts[7 * per_core :])}
    return replace(compiled, c=replace(compiled.c, files=files))


def test_a_missing_barrier_is_seen_with_the_layers_name(tmp_path: Path) -> None:
    """The error names the layer after the missing barrier, or the one before it if its core was late."""
    compiled = compile_model(small(), load_board("cluster8"), ALL)
    layers = ["0", "2", "2", "3", "4", "6"]  # between meetings
    assert sum(phase.meet for phase in compiled.plan.phases) == len(layers) - 1
    for number, pair in list(enumerate(pairwise(layers)))[::3]:
        broken = without_meetings(compiled, number)
        image = pipeline.build_image(broken, tmp_path / str(number))
        with pytest.raises(DeviceFault, match="two cores touch the same byte between two barriers") as caught:
            pipeline.run_image(broken, image)
        first, *others = caught.value.have
        assert first.startswith("in layer ") and first.split(": ")[1] in pair
        assert len([text for text in others if text.startswith("core ")]) == 2


def test_weights_come_in_tiles_while_the_cores_work(tmp_path: Path) -> None:
    source = large()
    compiled, all_ = run(source, ALL, tmp_path / "all")
    without, flash = run(source, replace(ALL, weights=Weights.FLASH), tmp_path / "flash")
    assert same(flash, all_)
    tiles, layers = compiled.plan.tiles, len(compiled.graph.nodes)
    assert tiles is not None and tiles.copies == len(compiled.plan.schedule.copies) > layers
    assert (tiles.limit, tiles.rows, tiles.ahead, tiles.cycles) in tiles.tried
    assert all_.emulator_cycles is not None and flash.emulator_cycles is not None
    assert abs(all_.emulator_cycles / tiles.cycles - 1) < 0.25
    assert all_.emulator_cycles < flash.emulator_cycles / 2
    assert "bt_team_copy(" not in without.c.files["model.c"]


def test_tiles_of_the_first_layer_may_be_larger() -> None:
    """Its first tile is not copied, and small tiles of the last layer end soon after their last copy."""
    torch.manual_seed(0)
    x = torch.randn(1, 640)
    net = nn.Sequential(nn.Linear(640, 128), nn.ReLU(), nn.Linear(128, 640))
    source = int8_model(from_module(net, (x,), "ends"), [(x,)]).narrow
    tiles = compile_model(source, load_board("cluster8"), Options(io=Io.INT8)).plan.tiles
    assert tiles is not None
    first, last = tiles.layers
    assert tiles.limit < 640 * 128 / first.count < FIRST
    assert 128 * 640 / last.count <= tiles.limit


def test_weights_come_earlier_where_two_phases_are_too_short(tmp_path: Path) -> None:
    """The copy for a large layer starts before the two small layers that precede it, because the scratchpad has
    room."""
    torch.manual_seed(0)
    x = torch.randn(1, 128)
    net = nn.Sequential(
        nn.Linear(128, 448), nn.ReLU(), nn.Linear(448, 128), nn.ReLU(), nn.Linear(128, 8), nn.ReLU(),
        nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128),
    )  # fmt: skip
    source = int8_model(from_module(net, (x,), "waist"), [(x,)]).narrow
    compiled, found = run(source, ALL, tmp_path / "all", "cluster4-soc")
    _, host = run(source, ONE, tmp_path / "host", "host")
    assert same(host, found)
    begun = {copy.name: time for time, phase in enumerate(compiled.plan.phases) for copy in phase.copies}
    early = {
        phase.main.layer: time - begun[name]
        for time, phase in enumerate(compiled.plan.phases)
        for name in phase.steps[0].awaits
        if time - begun[name] > 2
    }
    assert set(early.values()) == {3}
    large = compiled.plan.graph[next(iter(early))]
    assert (len(early), large.shape, large.origin.path) == (1, (1, 128), "8")


def test_cores_meet_before_one_writes_where_another_reads_what_was_brought() -> None:
    """The output of a layer is stored where the weights of the previous layer are, and the layer waits for nothing."""
    plan = on_all_cores().plan
    pairs = pairwise(plan.phases[1:])
    before, phase = next((a, b) for a, b in pairs if a.steps[0].call.y.name != b.steps[0].call.y.name)
    step = replace(phase.steps[0], awaits=(), operands=phase.steps[0].writes, executor=Executor("core", 7))
    brought = next(o for o in before.steps[0].operands if o.buffer)
    place = plan.layout.buffer(brought.buffer).offset
    buffers = [replace(b, offset=place) if b.name == step.writes[0].storage else b for b in plan.layout.buffers]
    layout = replace(plan.layout, buffers=tuple(buffers))
    schedule = Schedule((replace(before, copies=()), Phase((step,))), plan.schedule.executors)
    with pytest.raises(InternalError, match="and nothing orders them"):
        check_order(replace(plan, layout=layout, schedule=schedule))
    met = with_meetings(schedule, layout)
    assert met.phases[1].meet
    check_order(replace(plan, layout=layout, schedule=met))


def swapped(text: str) -> str:
    """Two copies that are under way at the same time have each other's buffer."""
    first, second = re.findall(r"bt_team_copy\(\d+, (AT\(void, \d+\)),", text)[1:3]
    assert first != second
    return text.replace(first, "AT(void, ?)").replace(second, first).replace("AT(void, ?)", second)


@cache
def on_all_cores() -> pipeline.Compiled:
    return compile_model(large(), load_board("cluster8"), ALL)


def instead_of_waiting(text: str, what: str = "") -> str:
    """For the second tile."""
    return re.sub(r"    bt_team_await\(1\);.*", what, text, count=1)


def timed(text: str) -> str:
    """Core 0 waits for longer than the copy takes with the engine that the chip has."""
    return instead_of_waiting(text, "    for (volatile uint32_t time = 0; time < 2000; time++) {}")


def awaits_another(text: str) -> str:
    return instead_of_waiting(text, "    bt_team_await(0);")


def slower(board: Board) -> Board:
    """Its DMA engine moves a byte in a cycle, after a long start."""
    cluster = board.chip.cluster
    assert cluster is not None and cluster.dma is not None
    dma = replace(cluster.dma, bytes_per_cycle=1, start_cycles=3000)
    return replace(board, chip=replace(board.chip, cluster=replace(cluster, dma=dma)))


def test_code_that_waits_takes_a_dma_that_ends_late(tmp_path: Path) -> None:
    compiled = on_all_cores()
    image = pipeline.build_image(compiled, tmp_path)
    soon = pipeline.run_image(compiled, image)
    late = pipeline.run_image(compiled, replace(image, board=slower(image.board)))
    copies = len(compiled.plan.schedule.copies)
    assert soon.emulator_cycles is not None and late.emulator_cycles is not None
    assert same(soon, late) and late.emulator_cycles > soon.emulator_cycles + copies * 3000


def as_it_is(board: Board) -> Board:
    return board


@pytest.mark.parametrize(
    ("broken", "engine"),
    [(swapped, as_it_is), (instead_of_waiting, as_it_is), (timed, as_it_is), (timed, slower), (awaits_another, slower)],
)
def test_a_broken_double_buffer_is_seen_with_the_layers_name(
    broken: Callable[[str], str], engine: Callable[[Board], Board], tmp_path: Path
) -> None:
    """Whether the copy has ended by then or not."""
    compiled = on_all_cores()
    files = {**compiled.c.files, "model.c": broken(compiled.c.files["model.c"])}
    assert files != compiled.c.files
    changed = replace(compiled, c=replace(compiled.c, files=files))
    image = pipeline.build_image(changed, tmp_path)
    with pytest.raises(DeviceFault, match="an access to a byte that is being copied") as caught:
        pipeline.run_image(changed, replace(image, board=engine(image.board)))
    assert caught.value.have[0] == "in layer 1 of 3: 0"
    assert caught.value.have[-1] in ("channel 0", "channel 1")


class Other(nn.Module):
    """Layers that read nothing but constants, and layers with a geometry that is not a convolution's."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.heads, self.back = nn.Linear(16, 48), nn.ConvTranspose2d(16, 8, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.heads(torch.cat([self.token, x], 1))
        q, k, v = rows.reshape(1, 9, 3, 2, 8).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.back(y.transpose(2, 3).reshape(1, 16, 3, 3))  # type: ignore[no-any-return]


def test_other_layers_give_the_bits_of_the_host(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 8, 16)
    source = int8_model(from_module(Other(), (x,), "other"), [(x,)]).narrow
    _, host = run(source, ONE, tmp_path / "host", "host")
    _, all_ = run(source, ALL, tmp_path / "all")
    assert same(host, all_)


def every_mode(board: str) -> Iterator[Options]:
    """Every number of cores, with units and without."""
    chip = load_board(board).chip
    for cores in range(1, chip.core_count + 1):
        for units in Units if chip.cluster is not None and chip.cluster.gemm is not None else (Units.OFF,):
            yield replace(ALL, cores=cores, units=units)


def test_some_modes_give_the_bits_of_the_host(tmp_path: Path) -> None:
    """An odd number of cores, and a chip without a unit; the long test has all."""
    source = small()
    _, host = run(source, ONE, tmp_path / "host", "host")
    _, five = run(source, replace(ALL, cores=5, units=Units.AUTO), tmp_path / "five")
    _, four = run(source, ALL, tmp_path / "four", "cluster4-soc")
    assert same(host, five) and same(host, four)


@pytest.mark.slow
@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("board", ["cluster8", "cluster4-soc"])
@pytest.mark.parametrize("model", ["kws", "ic", "vww", "ad"])
def test_all_modes_give_the_bits_of_the_host(model: str, board: str, narrow: bool, tmp_path: Path) -> None:
    """A model without its quantization is handled like a file that was quantized elsewhere: its scales stay."""
    lowered = int8_file(str(ZOO / f"{model}.py"))
    source = lowered.narrow if narrow else replace(lowered, quantization=None)
    _, host = run(source, ONE, tmp_path / "host", "host")
    for options in every_mode(board):
        _, found = run(source, options, tmp_path / f"{options.cores}-{options.units}", board)
        assert same(host, found), options


class Many(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, -x, x + 1], 1)


def test_answers_may_be_longer_than_64_kib(tmp_path: Path) -> None:
    x = torch.arange(6_000, dtype=torch.float32)[None]
    compiled = compile_model(from_module(Many(), (x,), "many"), load_board("cluster8"))
    (y,) = pipeline.run_image(compiled, pipeline.build_image(compiled, tmp_path)).outputs
    assert y.nbytes > 1 << 16 and y.tobytes() == Many()(x).numpy().tobytes()

"""Models on both cores of the Picos: the same bits as on one, in less time, and races that are seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch import emit, pipeline
from baretorch.errors import CompileError
from baretorch.frontends import Source, from_methods, from_module
from baretorch.machines.run import Run
from baretorch.machines.types import CoresRace
from baretorch.measure.facts import warnings_of
from baretorch.measure.profile import make_profile
from baretorch.measure.run import on_one_core
from baretorch.ops.helpers.executor import CORE0
from baretorch.options import Buffers, Io, Optimize, Options
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board
from tests.models import compile_model
from tests.zoo.zoo import MODELS, lowered

ONE, BOTH, ALONE = Options(), Options(cores=2), Options(core=1)
PICOS = ("pico", "pico2w")


def run(source: Source | LoweredModel, board: str, options: Options, folder: Path) -> tuple[pipeline.Compiled, Run]:
    compiled = compile_model(source, load_board(board), options)
    image = pipeline.build_image(compiled, folder)
    found = pipeline.run_image(compiled, image)
    assert 0 < found.stack_peak <= image.ram.stack
    return compiled, found


def check_same(source: Source | LoweredModel, board: str, options: Options, folder: Path) -> float:
    """The answers of both calls are the same to the last bit as on one core; gives the speed-up."""
    _, one = run(source, board, replace(options, cores=1, core=0), folder / "one")
    _, two = run(source, board, options, folder / "two")
    for a, b in zip((*one.first, *one.outputs), (*two.first, *two.outputs), strict=True):
        assert a.tobytes() == b.tobytes()
    assert two.cores is not None and one.cores is None
    assert two.instructions == two.cores.critical_path and one.instructions is not None
    assert all(0 <= w < two.cores.critical_path for w in two.cores.waiting)
    return one.instructions / two.cores.critical_path


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(8, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def convolution() -> Source:
    return from_module(Convolution(), (torch.randn(1, 8, 16, 16).to(memory_format=torch.channels_last),), "conv")


def linear() -> Source:
    torch.manual_seed(0)
    return from_module(nn.Linear(784, 400), (torch.randn(1, 784),), "linear")


@pytest.mark.parametrize("board", [pytest.param("pico", marks=pytest.mark.slow), "pico2w"])  # float is slow on one
@pytest.mark.parametrize("model", [linear, convolution])
def test_single_layers_take_half_the_time(model: object, board: str, tmp_path: Path) -> None:
    assert check_same(model(), board, BOTH, tmp_path) >= 1.9  # type: ignore[operator]


@pytest.mark.parametrize("board", ["pico", pytest.param("pico2w", marks=pytest.mark.slow)])
def test_keyword_spotting(board: str, tmp_path: Path) -> None:
    source = lowered("kws", True)
    assert check_same(source, board, replace(BOTH, io=Io.INT8), tmp_path) >= 1.75


@pytest.mark.parametrize(
    "options", [replace(BOTH, optimize=Optimize.SIZE), replace(BOTH, buffers=Buffers.CALLER), ALONE]
)
def test_other_ways_to_build_it(options: Options, tmp_path: Path) -> None:
    check_same(convolution(), "pico2w", options, tmp_path)


class Remembers(nn.Module):
    """A recurrent model with a wide layer: state that only one core changes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wide = nn.Linear(64, 128)
        self.register_buffer("kept", torch.zeros(1, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.copy_(0.5 * self.kept + torch.tanh(self.wide(x)))
        return self.kept + 1


@pytest.mark.parametrize("options", [BOTH, ALONE])
def test_state(options: Options, tmp_path: Path) -> None:
    check_same(from_module(Remembers(), (torch.randn(1, 64),), "remembers"), "pico", options, tmp_path)


def test_a_missing_barrier_is_a_race_between_layers(tmp_path: Path) -> None:
    """The second of two consecutive convolutions reads rows that the other core computes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1))
    source = from_module(model, (torch.randn(1, 4, 12, 12).to(memory_format=torch.channels_last),), "two")
    compiled = pipeline.compile_source(source, load_board("pico2w"), BOTH)
    (at,) = (i for i, phase in enumerate(compiled.plan.phases) if phase.meet and len(phase.steps) == 2)
    phases = tuple(replace(p, meet=p.meet and i != at) for i, p in enumerate(compiled.plan.phases))
    plan = replace(compiled.plan, schedule=replace(compiled.plan.schedule, phases=phases))
    plans = {source.method: plan}
    broken = replace(compiled, plans=plans, c=emit.emit(source.name, plans))
    image = pipeline.build_image(broken, tmp_path)
    with pytest.raises(CoresRace) as caught:
        pipeline.run_image(broken, image)
    told = caught.value.render()
    assert "core 0 works on 0, 1" in told and "core 1 works on 0, 1" in told, told


def test_the_stack_of_assembly_is_in_the_bound(tmp_path: Path) -> None:
    """int8 layers of Armv6-M push registers in inline assembly, of which compilers know nothing."""
    run(lowered("mnist_mlp", True), "pico", BOTH, tmp_path)


def test_nothing_to_share(tmp_path: Path) -> None:
    """A model too small for two cores runs, all of it on core 0."""
    torch.manual_seed(0)
    source = from_module(nn.Linear(4, 4), (torch.randn(1, 4),), "small")
    compiled, two = run(source, "pico2w", BOTH, tmp_path)
    assert {step.executor for step in compiled.plan.steps} == {CORE0}
    assert two.cores is not None and two.cores.instructions[1] < 100
    assert [w for w in warnings_of(compiled) if w.startswith("cores: no layer")]
    expected = compiled.source.expected
    assert expected is not None
    np.testing.assert_allclose(two.outputs[0], expected[0], rtol=1e-5)


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)

    def many(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_one_core_is_compared_with_all_methods() -> None:
    """Whichever is served, the arena is that of the method which needs most."""
    source = from_methods(Coder(), {"forward": (torch.randn(1, 8),), "many": (torch.randn(9, 8),)}, "coder")
    compiled = pipeline.compile_source(source, load_board("pico2w"), BOTH)
    alone = pipeline.compile_source(source, load_board("pico2w"), ONE)
    assert len({plan.arena for plan in alone.plans.values()}) > 1, "else there is nothing to mistake"
    assert on_one_core(compiled).arena == max(plan.arena for plan in alone.plans.values())


def test_a_profile_is_of_one_core(tmp_path: Path) -> None:
    compiled = pipeline.compile_source(linear(), load_board("pico2w"), BOTH)
    image = pipeline.build_image(compiled, tmp_path)
    with pytest.raises(CompileError) as caught:
        make_profile(compiled, image, pipeline.run_image(compiled, image))
    assert caught.value.render() == (
        "error: a profile describes one core, but the model runs on two\n"
        "  try   cores=1; `run` shows the work of each core"
    )


@pytest.mark.slow
@pytest.mark.parametrize("board", PICOS)
@pytest.mark.parametrize("int8", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_zoo(name: str, int8: bool, board: str, tmp_path: Path) -> None:
    """Those that fit the board: nothing else may be refused."""
    source = lowered(name, int8)
    try:
        compile_model(source, load_board(board), BOTH)
    except CompileError as error:
        assert "too small" in error.what, error.render()
        pytest.skip(error.what)
    check_same(source, board, BOTH, tmp_path)

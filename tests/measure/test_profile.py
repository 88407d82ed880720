"""Profiles are exact per layer, on every emulator and with every toolchain."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch
from torch import nn

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.measure.cycles import Flash
from baretorch.measure.loops import disassembly
from baretorch.measure.numbers import distinct_names
from baretorch.measure.profile import Profile, make_profile
from baretorch.options import Compiler, Optimize, Options, Weights
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model


class Net(nn.Module):
    """The second and the third layer are the same code with other weights."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(8, 64)
        self.one = nn.Linear(64, 64)
        self.two = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.two(self.one(self.wide(x))), 1)


@cache
def profiled(board: str, emulator: str, toolchain: str, optimize: str = "speed") -> tuple[Profile, Image]:
    torch.manual_seed(0)
    source = frontends.from_module(Net(), (torch.randn(1, 8),), "net")
    tools = (Compiler(toolchain), emulator)
    options = Options(toolchain=tools[0], emulator=tools[1], optimize=Optimize(optimize), weights=Weights.FLASH)
    compiled = compile_model(source, load_board(board), options)
    image = pipeline.build_image(compiled, Path(mkdtemp(prefix="baretorch-test-")))
    run = pipeline.run_image(compiled, image)
    profile = make_profile(compiled, image, run)
    assert profile.instructions == run.instructions
    return profile, image


@pytest.mark.parametrize(
    ("board", "emulator", "toolchain", "optimize"),
    [
        ("mps2-an386", "qemu", "gcc", "speed"),
        ("mps2-an386", "unicorn", "gcc", "size"),
        ("mps2-an505", "unicorn", "zig", "speed"),
        ("mps3-an547", "qemu", "gcc", "speed"),
        ("virt-rv32", "qemu", "gcc", "speed"),
        ("pico", "unicorn", "gcc", "speed"),
    ],
)
def test_layers_add_up(board: str, emulator: str, toolchain: str, optimize: str) -> None:
    profile, _ = profiled(board, emulator, toolchain, optimize)
    wide, one, two, softmax = profile.layers
    assert [layer.name for layer in profile.layers[:3]] == ["wide", "one", "two"] and softmax.op == "softmax"
    assert [layer.macs for layer in profile.layers] == [8 * 64, 64 * 64, 64 * 64, 0]
    assert 0 < profile.rest < 100
    assert wide.instructions < one.instructions
    assert sum(layer.instructions for layer in profile.layers) + profile.rest == profile.instructions
    for cycles in (profile.time.core, profile.time.all):
        assert cycles.best <= cycles.expected <= cycles.worst
    hottest = one.loops[0]
    assert hottest.instructions <= one.instructions and hottest.passes >= 8
    if board == "mps2-an386":  # with an FPU the two take the same path through the same code
        assert one.instructions == two.instructions and one.loops == two.loops
        assert hottest.instructions > one.instructions / 2


def test_flash_of_each_layer() -> None:
    """Two layers of 16 KiB go through a cache of 16 KiB: each waits for its own weights."""
    profile, _ = profiled("pico", "unicorn", "gcc")
    flashes = [layer.time.flash or Flash() for layer in profile.layers]
    assert [f.data_misses > 2000 for f in flashes] == [False, True, True, False]
    whole, own = profile.time.flash, profile.own.flash
    assert whole is not None and own is not None
    assert whole.bytes == own.bytes + sum(f.bytes for f in flashes) == 4 * whole.misses
    assert profile.time.all.expected == profile.time.core.expected + whole.waits.expected
    told = profile.to_json()
    assert told["cycles"] == told["core_cycles"] + told["flash_cycles"]
    assert sum(layer["flash_misses"]["data"] for layer in told["layers"]) + own.data_misses == whole.data_misses
    assert profiled("mps2-an386", "unicorn", "gcc")[0].time.flash is None


def test_emulators_agree_on_every_layer() -> None:
    qemu, unicorn = (profiled("mps2-an386", emulator, "gcc")[0] for emulator in ("qemu", "unicorn"))
    assert qemu == unicorn


def test_the_hottest_loop_is_shown_as_instructions() -> None:
    profile, image = profiled("mps2-an386", "qemu", "gcc")
    loop = profile.layers[1].loops[0]
    lines = disassembly(image, loop)
    assert len(lines) == round(loop.per_pass)
    assert "vfma.f32" in "".join(lines) and re.search(rf"b\w\w\.[nw] +{loop.start:x} ", lines[-1])


def test_a_board_without_counts_is_refused() -> None:
    with pytest.raises(CompileError, match="native does not report which instructions ran"):
        profiled("host", "native", "gcc")


class Branching(nn.Module):
    """Both branches begin with the same code, and the second has a layer more."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.more = (nn.Linear(16, 16) for _ in range(3))
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def small(x: torch.Tensor) -> torch.Tensor:
            return self.a(x)

        def large(x: torch.Tensor) -> torch.Tensor:
            return self.more(self.b(x))

        return self.head(torch.cond(x.sum() > 0, small, large, (x,)))


@pytest.mark.parametrize(("sign", "linears"), [(1, [True, False, False, True]), (-1, [False, True, True, True])])
def test_a_branch_that_is_not_taken_costs_nothing(sign: int, linears: list[bool]) -> None:
    torch.manual_seed(0)
    source = frontends.from_module(Branching(), (sign * torch.ones(1, 16),), "net")
    compiled = compile_model(source, load_board("mps2-an386"), Options(toolchain=Compiler.GCC))
    image = pipeline.build_image(compiled, Path(mkdtemp(prefix="baretorch-test-")))
    run = pipeline.run_image(compiled, image)
    profile = make_profile(compiled, image, run)
    layers = [layer for layer in profile.layers if layer.op == "linear"]
    assert [(layer.name, layer.macs) for layer in layers] == [("a", 256), ("b", 256), ("more", 256), ("head", 32)]
    assert [layer.instructions > layer.macs for layer in layers] == linears
    assert [layer.instructions == 0 for layer in layers] == [not ran for ran in linears]
    assert 0 < profile.rest < 100
    assert sum(layer.instructions for layer in profile.layers) + profile.rest == run.instructions


def test_names_are_cut_and_stay_different() -> None:
    long = [f"block/{i}/{'part/' * 12}MatMul" for i in range(3)]
    assert distinct_names(["conv", *long[:1]]) == ["conv", f"…{long[0][-39:]}"]
    shown = distinct_names(long)
    assert len(set(shown)) == 3 and all(name.startswith("…") for name in shown)
    assert distinct_names(["a", "a"]) == ["a", "a"]


class Empties(nn.Module):
    """Slices and parts of a concatenation that have no elements, as a model written for any length may have."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x)
        return torch.cat([y[:, :0] + 1, torch.tanh(y), y[:, 2:2].relu()], 1), torch.relu(y[:, 2:2])


@pytest.mark.parametrize("board", ["mps2-an386", "cluster8"])
@pytest.mark.parametrize("int8", [False, True])
def test_steps_without_elements_have_no_call(board: str, int8: bool, tmp_path: Path) -> None:
    """Compilers leave such calls out, so that calls and steps did not match."""
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    source = frontends.from_module(Empties(), (x,), "empties")
    source = int8_model(source, [(x,)]) if int8 else source
    compiled = compile_model(source, load_board(board))
    assert any(step.is_empty for step in compiled.plan.steps)
    image = pipeline.build_image(compiled, tmp_path)
    profile = make_profile(compiled, image, pipeline.run_image(compiled, image))
    assert sum(layer.instructions > 0 for layer in profile.layers) >= 3
    assert any(layer.instructions == 0 for layer in profile.layers)

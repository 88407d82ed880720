"""A fault names the layer that ran, also of two that are the same code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.run import run_on
from baretorch.machines.types import DeviceFault
from baretorch.options import Compiler, Options
from baretorch.targets.boards import load_board
from tests.measure.test_profile import Net

TRAP = "static volatile uint32_t calls;\n    if (++calls == {})\n        __builtin_trap();\n    "


@pytest.mark.parametrize(
    ("board", "emulator", "toolchain"),
    [
        ("mps2-an386", "qemu", "gcc"),
        ("mps2-an386", "unicorn", "gcc"),
        ("microbit", "qemu", "gcc"),
        ("mps3-an547", "qemu", "zig"),
        ("virt-rv32", "qemu", "gcc"),
        ("pico", "unicorn", "gcc"),
    ],
)
def test_the_layer_is_named(board: str, emulator: str, toolchain: str, tmp_path: Path) -> None:
    source = frontends.from_module(Net(), (torch.randn(1, 8),), "net")
    options = Options(toolchain=Compiler(toolchain), emulator=emulator)
    compiled = pipeline.compile_source(source, load_board(board), options)
    text = compiled.c.files["model.c"]
    begin = text.index("static const", text.index("BT_LAYER void linear_2"))
    for call, name in ((1, "in layer 2 of 4: one"), (2, "in layer 3 of 4: two")):
        files = {**compiled.c.files, "model.c": text[:begin] + TRAP.format(call) + text[begin:]}
        broken = replace(compiled, c=replace(compiled.c, files=files))
        image = pipeline.build_image(broken, tmp_path / str(call))
        with pytest.raises(DeviceFault) as fault:
            pipeline.run_image(broken, image)
        assert fault.value.have[0] == name


@pytest.mark.parametrize("core", [0, 1])
def test_of_two_cores(core: int, tmp_path: Path) -> None:
    """Each has parts of the two layers in the middle."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(torch.nn.Linear(96, 96) for _ in range(2)))
    source = frontends.from_module(layers.eval(), (torch.randn(1, 96),), "net")
    compiled = pipeline.compile_source(source, load_board("pico2w"), Options(toolchain=Compiler.GCC, cores=2))
    text = compiled.c.files["model.c"]
    trap = f"    if (*(volatile uint32_t *)0xd0000000u == {core})\n        __builtin_trap();\n    "
    begin = text.index("static const", text.index("BT_LAYER void linear_"))
    files = {**compiled.c.files, "model.c": text[:begin] + trap + text[begin:]}
    broken = replace(compiled, c=replace(compiled.c, files=files))
    image = pipeline.build_image(broken, tmp_path)
    with pytest.raises(DeviceFault) as fault:
        pipeline.run_image(broken, image)
    assert "in layer 1 of 2: 0" in fault.value.have


def test_where_the_image_is_not_at_hand(tmp_path: Path) -> None:
    """The image of a board on a port is built again."""
    source = frontends.from_module(Net(), (torch.randn(1, 8),), "net")
    options = Options(toolchain=Compiler.GCC, emulator="unicorn")
    compiled = pipeline.compile_source(source, load_board("pico"), options)
    text = compiled.c.files["model.c"]
    begin = text.index("static const", text.index("BT_LAYER void linear_2"))
    files = {**compiled.c.files, "model.c": text[:begin] + TRAP.format(2) + text[begin:]}
    broken = replace(compiled, c=replace(compiled.c, files=files))
    machine = open_machine(pipeline.build_image(broken, tmp_path), broken.c.run, "unicorn")
    with pytest.raises(DeviceFault) as fault, pipeline.name_failing_layer(broken):
        run_on(machine, broken.graph, store_inputs(broken.graph, source.examples))
    assert fault.value.have[0] == "in layer 3 of 4: two"


def test_a_fault_is_reported_without_a_toolchain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    source = frontends.from_module(Net(), (torch.randn(1, 8),), "net")
    compiled = pipeline.compile_source(source, load_board("pico"), Options())

    def missing(*_: object) -> None:
        raise CompileError("no compiler for pico")

    monkeypatch.setattr(pipeline, "build_image", missing)
    stopped = DeviceFault("the image stopped", have="pc 0x10000100")
    stopped.addresses = (0x10000100,)
    with pytest.raises(DeviceFault, match="the image stopped") as fault, pipeline.name_failing_layer(compiled):
        raise stopped
    assert fault.value.have == ("pc 0x10000100",)

"""The sine model runs on every board that has an emulator, with both toolchains."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.frontends import Source, load
from baretorch.machines import open_machine
from baretorch.machines.run import run_on
from baretorch.measure.facts import RunFacts, compare
from baretorch.options import Compiler, Optimize, Options
from baretorch.targets.boards import board_names, load_board

SINE = "examples/sine/model.py"
EMULATED = [name for name in board_names() if load_board(name).emulators]


@pytest.fixture(scope="module")
def sine(request: pytest.FixtureRequest) -> Source:
    return load(str(request.config.rootpath / SINE))


def run(source: Source, board: str, folder, toolchain: str) -> RunFacts:  # type: ignore[no-untyped-def]
    compiled = pipeline.compile_source(source, load_board(board), Options(toolchain=Compiler(toolchain)))
    image = pipeline.build_image(compiled, folder)
    return compare(compiled, image, pipeline.run_image(compiled, image))


def test_every_board_of_the_design_is_emulated() -> None:
    assert set(EMULATED) >= {
        "pico", "pico2", "pico2w", "pico4ml", "nucleo-wb55rg", "nucleo-h743zi", "host", "mps2-an385",
        "mps2-an385-v6m", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "microbit", "virt-rv32",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("board", "toolchain"),
    [(b, t) for b in EMULATED for t in ("gcc", "zig") if t == "gcc" or load_board(b).chip.cpu.zig is not None],
)
def test_sine_on_every_board(sine: Source, board: str, toolchain: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    facts = run(sine, board, tmp_path, toolchain)
    assert facts.reference == "PyTorch"
    assert facts.max_error < 1e-5
    if board != "host":
        assert facts.run.instructions
        assert facts.run.stack_peak <= facts.image.ram.stack


def test_the_goals_on_cortex_m4f(sine: Source, tmp_path) -> None:  # type: ignore[no-untyped-def]
    facts = run(sine, "mps2-an386", tmp_path, "gcc")
    assert facts.run.instructions is not None and facts.run.instructions <= 1200
    assert facts.image.flash.model_code <= 1500
    assert facts.image.ram.arena + facts.image.ram.model_static <= 200


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an385", "mps2-an500", "mps2-an505", "microbit"])
def test_qemu_and_unicorn_count_alike(sine: Source, board: str, toolchain: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Two emulators count the same instructions in the same image."""
    compiled = pipeline.compile_source(sine, load_board(board), Options(toolchain=Compiler(toolchain)))
    image = pipeline.build_image(compiled, tmp_path)
    runs = []
    for emulator in ("qemu", "unicorn"):
        machine = open_machine(image, compiled.c.run, emulator)
        runs.append(run_on(machine, compiled.graph, sine.examples))
        machine.close()
    assert runs[0].instructions == runs[1].instructions
    assert np.array_equal(runs[0].outputs[0], runs[1].outputs[0])


@pytest.mark.parametrize("board", ["mps2-an386", "pico", "virt-rv32"])
def test_optimizing_for_size_gives_the_same_answers(sine: Source, board: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    compiled = pipeline.compile_source(sine, load_board(board), Options(toolchain=Compiler.GCC, optimize=Optimize.SIZE))
    image = pipeline.build_image(compiled, tmp_path)
    assert compare(compiled, image, pipeline.run_image(compiled, image)).max_error < 1e-5

"""Projects built with stubs of their SDKs, which know the documented commands and nothing else, and run.

A program runs on its board's own chip, emulated by Unicorn, where the stub starts it as our images are started; what
Unicorn has no chip for, on QEMU's machine with that CPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from baretorch.exports import BY_NAME
from baretorch.exports.board import board_files
from baretorch.exports.project import RTOS_BYTES, project_files
from baretorch.options import Console
from baretorch.pipeline import build_image
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.exports.chip import said_on_chip
from tests.exports.test_projects import (
    FIGURES,
    MODELS,
    all_right,
    answers,
    compiled,
    exact,
    in_folder,
    numbers,
    readme_commands,
    run,
    steps,
)

STUBS = Path(__file__).parent / "stubs"
NEWLIB = "arm-none-eabi-g++"
TOOLS = ("cmake", "make", "ninja", "qemu-system-arm", NEWLIB)
MAINS = ("main.c", "main.cpp", "src/main.c")
missing = [tool for tool in TOOLS if not shutil.which(tool)]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@dataclass(frozen=True)
class Machine:
    """A machine of QEMU, and the addresses of its memory."""

    name: str
    flash: int = 0
    ram: int = 0x20000000


M3, M4 = Machine("mps2-an385"), Machine("mps2-an386")
CASES: list[tuple[str, str, Machine | None]] = [  # None: the board's chip
    ("pico-sdk", "pico", None),
    ("pico-sdk", "pico2w", None),
    ("mbed-ce", "nucleo-wb55rg", None),
    ("mbed-ce", "nucleo-h743zi", None),
    ("mbed-ce", "host", M4),
    ("zephyr", "mps2-an385", M3),
    ("zephyr", "nucleo-wb55rg", None),
    ("zephyr", "pico2w", None),
]
QUICK = {("pico-sdk", "pico2w", "sine"), ("mbed-ce", "nucleo-wb55rg", "kws"), ("zephyr", "mps2-an385", "streaming_gru")}


def cells() -> list[object]:
    return [
        pytest.param(
            *case, model, id=f"{case[0]}-{case[1]}-{model}",
            marks=() if (*case[:2], model) in QUICK else pytest.mark.slow,
        )
        for case in CASES
        for model in MODELS
    ]  # fmt: skip


@pytest.mark.parametrize("sdk, board, machine, model", cells())
def test_it_builds_and_is_right_on_the_chip(
    sdk: str, board: str, machine: Machine | None, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(sdk, board, machine, model, tmp_path, monkeypatch)


def printed(
    sdk: str,
    board: str,
    machine: Machine | None,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: str = "OFF",
    figures: Mapping[str, object] = FIGURES,
    bits: bool = False,
) -> str:
    folder = in_folder(project_files(compiled(model, board), BY_NAME[sdk], figures), tmp_path)
    there = load_board("mps2-an386" if board == "host" else board)
    flags = " ".join(there.chip.cpu.gcc)
    if sdk == "pico-sdk":  # floats go through the core's registers there
        flags = flags.replace("-mfloat-abi=hard", "-mfloat-abi=softfp")
    if machine is None:
        on = {"STUB_CHIP": str(start_up(there, tmp_path / "chip"))}
    else:
        on = {"STUB_CHIP": "", "STUB_FLASH": hex(machine.flash), "STUB_RAM": hex(machine.ram)}
    for name, value in {
        "STUBS": str(STUBS),
        "STUB_CPU": flags,
        **on,
        "PICO_SDK_PATH": str(STUBS / "pico-sdk"),
        "ZEPHYR_BASE": str(STUBS / "zephyr"),
    }.items():
        monkeypatch.setenv(name, value)
    if bits:
        exact(next(folder / name for name in MAINS if (folder / name).exists()))
    if bits and board == "host":  # on a core that would round once where this computer rounds twice
        lists = folder / model / "CMakeLists.txt"
        lists.write_text(lists.read_text().replace("-ffp-contract=fast", "-ffp-contract=off"))
    if sdk == "zephyr":  # its README has west, which there is no stub of
        named = load_board(board).sdk[sdk]["board"]
        run("cmake", "-S", ".", "-B", "build", f"-DBOARD={named}", f"-DZephyr_ROOT={STUBS / 'zephyr'}", folder=folder)
        run("cmake", "--build", "build", folder=folder)
    else:
        commands = readme_commands((folder / "README.md").read_text())
        if sdk == "mbed-ce":  # what fetches Mbed is not needed
            os.symlink(STUBS / "mbed-os", folder / "mbed-os")
            commands = [commands[1].replace(" &&", f" -DBARE_METAL={profile} &&")]
        for command in commands:
            run("sh", "-c", command, folder=folder)
    elf = next(p for p in (folder / "build").iterdir() if p.name.removesuffix(".elf") in (f"{model}_example", "zephyr"))
    said = said_on_chip(elf, model, there, "END\n") if machine is None else said_on_qemu(elf, machine)
    assert all_right(said, model, runs_of(sdk, model)), said
    return said


def runs_of(sdk: str, model: str) -> int:
    """Programs that go on for ever end when they sleep for the fifth time."""
    return 5 if sdk in ("pico-sdk", "mbed-ce") else steps(model)


def start_up(board: Board, folder: Path) -> Path:
    """Our code for a board, for the stub to call its program; and its memory map, with constructors of C++."""
    files = board_files(board.with_console(Console.UART))
    text = "    .text : { *(.text .text.*) }"
    assert text in files["link.ld"]
    arrays = "    .init_array : { __init_array_start = .; KEEP(*(.init_array*)) __init_array_end = .; }"
    files["link.ld"] = files["link.ld"].replace(text, f"{arrays} > {board.chip.code}\n{text}")
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body)
    return folder


def said_on_qemu(elf: Path, machine: Machine) -> str:
    command = ["qemu-system-arm", "-M", machine.name, "-nographic", "-monitor", "none", "-semihosting", "-kernel", elf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("sdk", "board", "machine"), CASES)
@pytest.mark.parametrize("model", MODELS)
def test_all_bits_are_those_of_our_image(
    sdk: str, board: str, machine: Machine | None, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An FPU that multiplies and adds in one step rounds once, where this computer rounds twice. So a float model is
    held to an image for the same board; an int8 model, and a core without FPU, to board host as well."""
    said = numbers(printed(sdk, board, machine, model, tmp_path, monkeypatch, bits=True))
    runs = runs_of(sdk, model)
    if board == "host":
        assert said == answers(model, "host", runs)
        return
    assert said == answers(model, board, runs)
    if MODELS[model] or not load_board(board).chip.cpu.has_fpu:
        assert said == answers(model, "host", runs)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_mbed_without_its_rtos(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = printed("mbed-ce", "nucleo-wb55rg", None, model, tmp_path, monkeypatch, "ON")
    assert "heap: " in said and "stack: " in said


@pytest.mark.parametrize("model", [pytest.param(m, marks=() if m == "sine" else pytest.mark.slow) for m in MODELS])
def test_mbeds_thread_has_the_stack_that_the_model_needs(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of Baretorch's own image; the same C compiled by Mbed's compiler stays within it."""
    image = build_image(compiled(model, "nucleo-wb55rg"), tmp_path / "image")
    bound = image.run_stack
    assert bound is not None
    figures = {**FIGURES, "stack_bytes": bound}
    said = printed("mbed-ce", "nucleo-wb55rg", None, model, tmp_path / "mbed", monkeypatch, figures=figures)
    used, size = map(int, re.search(r"stack of its thread: (\d+) of (\d+) bytes", said).groups())  # type: ignore[union-attr]
    assert size == -(-bound // 8) * 8 + RTOS_BYTES
    assert 0 < used <= size - RTOS_BYTES // 2, "half of what the RTOS has is unused, as the stub needs less"


@pytest.mark.parametrize("model", ["sine", *(pytest.param(m, marks=pytest.mark.slow) for m in MODELS if m != "sine")])
def test_esp_idf_components(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `host` the C is portable, so this computer stands in for an ESP32."""
    folder = in_folder(project_files(compiled(model, "host"), BY_NAME["esp-idf"], FIGURES), tmp_path)
    exact(folder / "main/main.c")
    monkeypatch.setenv("IDF_PATH", str(STUBS / "esp-idf"))
    run("cmake", "-S", ".", "-B", "build", folder=folder)
    run("cmake", "--build", "build", folder=folder)
    said = run(f"build/{model}_example", folder=folder)
    assert all_right(said, model, steps(model)) and numbers(said) == answers(model, "host")

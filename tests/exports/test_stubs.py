"""Projects built with stubs of their SDKs, which know the documented commands and nothing else, and run.

An Arm program runs on QEMU's machine with the same CPU, or with one that has its instructions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from baretorch.exports import BY_NAME, project
from baretorch.targets.boards import load_board
from tests.exports.test_projects import FIGURES, MODELS, compiled, in_folder, run

STUBS = Path(__file__).parent / "stubs"
NEWLIB = "arm-none-eabi-g++"
TOOLS = ("cmake", "make", "qemu-system-arm", NEWLIB)
missing = [tool for tool in TOOLS if not shutil.which(tool)]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@dataclass(frozen=True)
class Machine:
    """One of QEMU's, and where its memory lies."""

    name: str
    flash: int = 0
    ram: int = 0x20000000


M3, M4, M33 = Machine("mps2-an385"), Machine("mps2-an386"), Machine("mps2-an505", 0x10000000, 0x38000000)
CASES = [
    ("pico-sdk", "pico", M3),
    ("pico-sdk", "pico2w", M33),
    ("mbed-ce", "nucleo-wb55rg", M4),
    ("zephyr", "mps2-an385", M3),
    ("zephyr", "nucleo-wb55rg", M4),
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
    sdk: str, board: str, machine: Machine, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = in_folder(project(compiled(model, board), BY_NAME[sdk], FIGURES), tmp_path)
    flags = " ".join(load_board(board).chip.cpu.gcc)
    for name, value in {
        "STUBS": str(STUBS),
        "STUB_CPU": flags,
        "STUB_FLASH": hex(machine.flash),
        "STUB_RAM": hex(machine.ram),
        "PICO_SDK_PATH": str(STUBS / "pico-sdk"),
        "ZEPHYR_BASE": str(STUBS / "zephyr"),
    }.items():
        monkeypatch.setenv(name, value)
    more = {
        "zephyr": [f"-DBOARD={(BY_NAME[sdk].boards or {})[board]['SDK_BOARD']}", f"-DZephyr_ROOT={STUBS / 'zephyr'}"]
    }
    if sdk == "mbed-ce":
        os.symlink(STUBS / "mbed-os", folder / "mbed-os")
        more[sdk] = [f"-DMBED_TARGET={(BY_NAME[sdk].boards or {})[board]['SDK_BOARD']}"]
    run("cmake", "-S", ".", "-B", "build", *more.get(sdk, []), folder=folder)
    run("cmake", "--build", "build", folder=folder)
    elf = next(p for p in (folder / "build").iterdir() if p.name.removesuffix(".elf") in (f"{model}_example", "zephyr"))
    command = ["qemu-system-arm", "-M", machine.name, "-nographic", "-monitor", "none", "-semihosting", "-kernel", elf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert f"{model}: right" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("model", ["sine", *(pytest.param(m, marks=pytest.mark.slow) for m in MODELS if m != "sine")])
def test_esp_idf_components(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `host` the C is portable, so this computer stands in for an ESP32."""
    folder = in_folder(project(compiled(model, "host"), BY_NAME["esp-idf"], FIGURES), tmp_path)
    monkeypatch.setenv("IDF_PATH", str(STUBS / "esp-idf"))
    run("cmake", "-S", ".", "-B", "build", folder=folder)
    run("cmake", "--build", "build", folder=folder)
    assert f"{model}: right" in run(f"build/{model}_example", folder=folder)

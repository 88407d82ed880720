"""VS Code's projects: built by their tasks, run on the emulated board, debugged as launch.json says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from baretorch.exports import BY_NAME, boards_of
from baretorch.exports.project import project_files
from baretorch.targets.boards import load_board
from tests.exports.chip import said_on_chip
from tests.exports.test_projects import FIGURES, MODELS, all_right, compiled, in_folder, readme_commands, run, steps

TOOLS = ("cmake", "make", "qemu-system-arm", "arm-none-eabi-gcc")
missing = [tool for tool in TOOLS if not shutil.which(tool)]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
QUICK = ("softmax", "mps2-an386")


def made(model: str, board: str, folder: Path) -> Path:
    return in_folder(project_files(compiled(model, board), BY_NAME["vscode"], FIGURES), folder)


def task(folder: Path, label: str) -> str:
    tasks: list[dict[str, Any]] = json.loads((folder / ".vscode/tasks.json").read_text())["tasks"]
    return str(next(t["command"] for t in tasks if t["label"] == label))


def printed(command: str, folder: Path, text: str, times: int, seconds: float = 60) -> str:
    """Return the text that a program prints until `text` has occurred `times` times."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            said, deadline = "", time.monotonic() + seconds
            assert child.stdout is not None
            while said.count(text) < times and time.monotonic() < deadline:
                said += child.stdout.readline()
            return said
        finally:
            child.kill()


QEMU = [(m, b) for m in MODELS for b in ("mps2-an386", "mps2-an385", "mps3-an547", "mps2-an500", "mps2-an505")]


@pytest.mark.parametrize(
    ("model", "board"), [pytest.param(*c, marks=() if c == QUICK else pytest.mark.slow) for c in QEMU]
)
def test_the_tasks(model: str, board: str, tmp_path: Path) -> None:
    folder = made(model, board, tmp_path)
    run("sh", "-c", task(folder, "build"), folder=folder)
    assert all_right(printed(task(folder, "run"), folder, f"{model}: ", steps(model)), model, steps(model))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("board", ["pico2w", "nucleo-wb55rg", "nucleo-h743zi"])
def test_the_board(model: str, board: str, tmp_path: Path) -> None:
    """On the emulated chip itself."""
    folder = made(model, board, tmp_path)
    # Emulators count from the run function to a label of our images, which this program does not have.
    label = "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--defsym=bt_model_returned=bt_serve"
    run("cmake", "--preset", board, label, folder=folder)
    run("cmake", "--build", "--preset", board, folder=folder)
    elf = folder / f"build/{model}_example.elf"
    assert all_right(said_on_chip(elf, model, load_board(board), " us\n", steps(model)), model, steps(model))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gdb-multiarch"), reason="gdb-multiarch is not installed")
def test_the_debugger(tmp_path: Path) -> None:
    """cortex-debug interprets launch.json like this: QEMU waits for gdb, and gdb gets these commands."""
    folder = made("kws", "mps2-an386", tmp_path)
    run("sh", "-c", task(folder, "build"), folder=folder)
    (launch,) = json.loads((folder / ".vscode/launch.json").read_text())["configurations"]
    elf = launch["executable"].replace("${workspaceFolder}", str(folder))
    server = ["-M", launch["machine"], "-cpu", launch["cpu"], "-nographic", "-monitor", "none", "-kernel", elf]
    with subprocess.Popen(
        ["qemu-system-arm", *server, "-S", "-gdb", f"unix:{folder}/gdb,server=on,wait=off"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as qemu:
        try:
            while not (folder / "gdb").exists():
                time.sleep(0.05)
            commands = [
                f"target remote {folder}/gdb", *launch["postLaunchCommands"], f"tbreak {launch['runToEntryPoint']}",
                "continue", "break-layer 5.0", "continue", "set print elements 1", "print-tensor 4.0 compare", "next",
                "print-tensor 5.0 compare", "info source",
            ]  # fmt: skip
            words = [word for command in commands for word in ("-ex", command)]
            said = run(launch["gdbPath"], "-q", "-nx", "-batch", elf, *words, folder=folder)
        finally:
            qemu.kill()
    assert said.count("all 8000 numbers are the reference's") == 2, said
    assert re.search(r"Located in .*kws/kws/model\.c", said)


def test_files_are_what_vs_code_reads(tmp_path: Path) -> None:
    for board in boards_of(BY_NAME["vscode"]):
        files = project_files(compiled("softmax", board), BY_NAME["vscode"], FIGURES)
        launch = json.loads(files[".vscode/launch.json"])
        tasks = {t["label"] for t in json.loads(files[".vscode/tasks.json"])["tasks"]}
        for one in launch["configurations"]:
            assert one["type"] == "cortex-debug" and one["preLaunchTask"] in tasks
            assert all(one.get(key) != "" for key in ("machine", "cpu", "targetId")), one
            assert "" not in one.get("configFiles", [])
        assert json.loads(files["CMakePresets.json"])["configurePresets"][0]["name"] == board
        assert " && ".join(readme_commands(files["README.md"])) == next(
            t["command"] for t in json.loads(files[".vscode/tasks.json"])["tasks"] if t["label"] == "build"
        )
        assert not re.search("/(usr|home|root)/", "".join(files.values()))

"""baretorch doctor: list the tools that are installed or missing, their purpose, and how to install them."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from dataclasses import dataclass

from baretorch.cli.verb import Answer, verb


@dataclass(frozen=True)
class Tool:
    """A tool that Baretorch can use. On a bare machine `baretorch run` of a .pte does not work without a `needed`
    one."""

    name: str
    kind: str  # "package", "program", "library" with its headers, or "npm": a package of Node.js
    purpose: str
    get: str
    needed: bool = False


TOOLS: tuple[Tool, ...] = (
    Tool("unicorn", "package", "runs images of Cortex-M boards", "pip install unicorn==2.1.4", needed=True),
    Tool("ziglang", "package", "builds images without another compiler", "pip install ziglang==0.17.0", needed=True),
    Tool("tinygrad", "package", "reads model files of tinygrad", 'pip install "baretorch[tinygrad]"'),
    Tool("torch", "package", "reads model files of PyTorch and .pt2", 'pip install "baretorch[torch]"'),
    Tool("torchao", "package", "for models that are trained in int8", 'pip install "baretorch[torch]"'),
    Tool("onnx", "package", "reads .onnx", 'pip install "baretorch[onnx]"'),
    Tool("onnxruntime", "package", "reference results for .onnx files, faster than onnx", "pip install onnxruntime"),
    Tool("executorch", "package", "writes .pte (`baretorch export`)", 'pip install "baretorch[executorch]"'),
    Tool("ai-edge-litert", "package", "reference results for .tflite files", 'pip install "baretorch[tflite]"'),
    Tool("pyserial", "package", "talks to boards (`baretorch monitor --port`)", "pip install pyserial"),
    Tool("matplotlib", "package", "draws `baretorch monitor --png`", 'pip install "baretorch[plot]"'),
    Tool("optuna", "package", "searches (`baretorch tune`)", 'pip install "baretorch[tune]"'),
    Tool("pyocd", "package", "flashes through a debug probe", 'pip install "baretorch[flash]"'),
    Tool("arm-none-eabi-gcc", "program", "builds smaller images for Arm", "apt-get install gcc-arm-none-eabi"),
    Tool("riscv64-unknown-elf-gcc", "program", "builds for RISC-V", "apt-get install gcc-riscv64-unknown-elf"),
    Tool("qemu-system-arm", "program", "runs the MPS2 and MPS3 boards", "apt-get install qemu-system-arm"),
    Tool("qemu-system-riscv32", "program", "runs virt-rv32, virt-hazard3", "apt-get install qemu-system-misc"),
    Tool("gdb-multiarch", "program", "looks into a running model (`baretorch debug`)", "apt-get install gdb-multiarch"),
    Tool("avr-gcc", "program", "builds for arduino-uno, arduino-mega", "apt-get install gcc-avr avr-libc"),
    Tool("simavr", "library", "runs arduino-uno, arduino-mega", "apt-get install libsimavr-dev gcc"),
    Tool("avrdude", "program", "flashes Arduinos", "apt-get install avrdude"),
    Tool("node", "program", "runs rp2040js", "apt-get install nodejs npm"),
    Tool("rp2040js", "npm", "runs pico and pico4ml as a second opinion", "npm install --global rp2040js@1.4.1"),
    Tool("cc", "program", "builds for board host, counts instructions", "apt-get install gcc"),
)

SECONDS = 60  # time limit for a tool to report its version


@verb("doctor")
def doctor(as_json: bool) -> Answer:
    """List installed and missing tools, with install commands."""
    from rich.table import Table

    from baretorch.escape import markup

    found = [(tool, version(tool)) for tool in TOOLS]
    ready = all(v is not None for tool, v in found if tool.needed)
    table = Table.grid(padding=(0, 2))
    for i in range(4):
        table.add_column(no_wrap=i < 3, overflow="fold")
    for tool, v in found:
        mark = "[green]ok[/]" if v is not None else "[red]missing[/]" if tool.needed else "[yellow]-[/]"
        remedy = f"[cyan]{markup(tool.get)}[/]" if v is None else ""
        table.add_row(mark, tool.name, markup(v or ""), f"{tool.purpose}{': ' if remedy else ''}{remedy}")
    data = {
        "ready": ready,
        "tools": [
            {"name": t.name, "kind": t.kind, "version": v, "purpose": t.purpose, "needed": t.needed, "get": t.get}
            for t, v in found
        ],
    }
    return Answer(data, table, 0 if ready else 1)


def version(tool: Tool) -> str | None:
    """Return the installed version, or None."""
    if tool.kind == "package":
        try:
            return importlib.metadata.version(tool.name)
        except importlib.metadata.PackageNotFoundError:
            return None
    if tool.kind == "library":
        from baretorch.machines.simavr import find_simavr

        return "installed" if find_simavr() else None
    if tool.kind == "npm":
        from baretorch.machines.rp2040js.machine import installed_version

        return installed_version()
    path = shutil.which(tool.name)
    if path is None:
        return None
    try:
        asked = [path, "--version"]
        said = subprocess.run(
            asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS
        ).stdout
    except (subprocess.TimeoutExpired, OSError):  # it waits for something, or cannot be run
        return "unknown version"
    number = re.search(r"(?<=\s)\d+(\.\d+)+(?=\s|$)", f" {said.removeprefix('v')}")
    return number[0] if number else "unknown version"

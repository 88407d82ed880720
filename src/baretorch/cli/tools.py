"""The tools that Baretorch can use: packages, compilers and other programs, and those of each emulator."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess

from baretorch.machines import find_driver
from baretorch.machines.types import Tool
from baretorch.targets.types import EMULATORS

TOOLS: tuple[Tool, ...] = (
    Tool("ziglang", "package", "builds images without another compiler", "pip install ziglang==0.17.0", needed=True),
    Tool("tinygrad", "package", "reads model files of tinygrad", 'pip install "baretorch[tinygrad]"'),
    Tool("torch", "package", "reads model files of PyTorch and .pt2", 'pip install "baretorch[torch]"'),
    Tool("onnx", "package", "reads .onnx", 'pip install "baretorch[onnx]"'),
    Tool("onnxruntime", "package", "reference results for .onnx files, faster than onnx", "pip install onnxruntime"),
    Tool("executorch", "package", "writes .pte (`baretorch export`)", 'pip install "baretorch[executorch]"'),
    Tool("ai-edge-litert", "package", "reference results for .tflite files", 'pip install "baretorch[tflite]"'),
    Tool("pyserial", "package", "talks to boards (`baretorch monitor --port`)", "pip install pyserial"),
    Tool("matplotlib", "package", "draws `baretorch monitor --png`", 'pip install "baretorch[plot]"'),
    Tool("optuna", "package", "searches (`baretorch tune`)", 'pip install "baretorch[tune]"'),
    Tool("mcp", "package", "serves assistants (`baretorch mcp`)", 'pip install "baretorch[mcp]"'),
    Tool("pyocd", "package", "flashes through a debug probe", 'pip install "baretorch[flash]"'),
    Tool("arm-none-eabi-gcc", "program", "builds smaller images for Arm", "apt-get install gcc-arm-none-eabi"),
    Tool("riscv64-unknown-elf-gcc", "program", "builds for RISC-V", "apt-get install gcc-riscv64-unknown-elf"),
    Tool("gdb-multiarch", "program", "debugs a running model (`baretorch debug`)", "apt-get install gdb-multiarch"),
    Tool("avr-gcc", "program", "builds for AVR", "apt-get install gcc-avr avr-libc"),
    Tool("avrdude", "program", "flashes Arduinos", "apt-get install avrdude"),
    Tool("cc", "program", "builds for board host, counts instructions", "apt-get install gcc"),
    *(tool for name in EMULATORS for tool in find_driver(name).tools),
)
SECONDS = 60  # time limit for a tool to report its version


def version(tool: Tool) -> str | None:
    """Return the installed version, or None."""
    if tool.kind == "package":
        try:
            return importlib.metadata.version(tool.name)
        except importlib.metadata.PackageNotFoundError:
            return None
    if tool.find is not None:
        return tool.find()
    path = shutil.which(tool.name)
    if path is None:
        return None
    try:
        command = [path, "--version"]
        output = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS
        ).stdout
    except (subprocess.TimeoutExpired, OSError):  # it waits for something, or cannot be run
        return "unknown version"
    number = re.search(r"(?<=\s)\d+(\.\d+)+(?=\s|$)", f" {output.removeprefix('v')}")
    return number[0] if number else "unknown version"

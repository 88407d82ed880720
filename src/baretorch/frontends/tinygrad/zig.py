"""Compiles tinygrad's kernels with Zig's clang, which comes with Baretorch, if there is no other clang."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from types import ModuleType
from typing import Any

from baretorch.files.write import scratch, write_scratch

# As tinygrad calls clang, without what Zig adds: its loader knows no debug information.
FLAGS = (
    "-c", "-O2", "-fPIC", "-ffreestanding", "-fno-math-errno", "-nostdlib", "-target", "x86_64-linux-musl",
    "-g0", "-fno-sanitize=undefined", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
)  # fmt: skip


def choose_device() -> None:
    """Choose where tinygrad computes unless the user did: on the CPU if there is a compiler for it, else in Python."""
    if "DEV" not in os.environ:
        os.environ["DEV"] = "CPU" if _has_clang() or _zig_can() else "PYTHON"


def use_zig(module: ModuleType) -> None:
    """Let tinygrad use Zig if its own compiler is missing."""
    if not _has_clang() and _zig_can():
        module.ClangCompiler.compile = _compile
        sys.modules["tinygrad.helpers"].PARALLEL.value = 0  # its child processes would not use Zig


def _compile(compiler: Any, source: str) -> bytes:
    with scratch() as folder:
        kernel, made = folder / "kernel.c", folder / "kernel.o"
        write_scratch(kernel, source)
        command = [sys.executable, "-P", "-m", "ziglang", "cc", *FLAGS, *compiler.args, str(kernel), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
        return made.read_bytes()


def _has_clang() -> bool:
    return shutil.which(os.environ.get("CC", "clang")) is not None


def _zig_can() -> bool:
    here = sys.platform == "linux" and platform.machine() == "x86_64"
    return here and "CC" not in os.environ and importlib.util.find_spec("ziglang") is not None

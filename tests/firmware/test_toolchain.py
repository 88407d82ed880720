"""Which compiler is taken, and what is said when there is none."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.toolchain import find_toolchain
from baretorch.targets.boards import load_board


def test_gcc_comes_first_and_zig_steps_in(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("pico")
    assert find_toolchain(board).name == "gcc"
    assert find_toolchain(board, "zig").name == "zig"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert find_toolchain(board).name == "zig"


@pytest.mark.parametrize(
    ("board", "prefer", "text"),
    [
        (
            "pico",
            "gcc",
            "error: no compiler for pico\n  need  arm-none-eabi-gcc\n  try   `apt-get install gcc-arm-none-eabi`",
        ),
        (
            "virt-rv32",
            "gcc",
            "error: no compiler for virt-rv32\n  need  riscv64-unknown-elf-gcc\n"
            "  try   `apt-get install gcc-riscv64-unknown-elf`",
        ),
        (
            "pico",
            "zig",
            "error: no compiler for pico\n  need  the Python package ziglang\n  try   `pip install ziglang`",
        ),
        (
            "host",
            None,
            "error: no compiler for host\n  need  cc or the Python package ziglang\n"
            "  try   `pip install ziglang` or `apt-get install gcc`",
        ),
    ],
)
def test_missing_compilers(board: str, prefer: str | None, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompileError) as caught:
        find_toolchain(load_board(board), prefer)
    assert caught.value.render() == text


def test_unknown_name() -> None:
    with pytest.raises(CompileError, match="unknown toolchain icc"):
        find_toolchain(load_board("pico"), "icc")

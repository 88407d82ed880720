"""The cache is a help, not a need: what is damaged in it is made again."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from baretorch.emulators.hooks import shared_library
from baretorch.firmware.build import build
from baretorch.firmware.cache import cache_folder, recall, remember
from baretorch.firmware.types import Image
from baretorch.ir import Builder, DType
from baretorch.on_host import on_host
from baretorch.ops.linear import Linear
from baretorch.targets.boards import load_board
from tests.firmware.conftest import DUMMY, SOURCES

Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "one_bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "zeros": lambda data: bytes(len(data)),
}


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def damage(folder: Path, change: Damage) -> int:
    """How many files were changed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(change(path.read_bytes()))
    return len(files)


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    remember("things", "key", {"a": b"x"})
    assert recall("things", "key") == {"a": b"x"} and tmp_path not in cache_folder().parents


def test_an_entry_that_cannot_be_written_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    remember("things", "other", {})
    monkeypatch.setattr(os, "fsync", full)
    remember("things", "key", {"a": b"x"})
    assert recall("things", "key") is None
    assert [path.name for path in (own_cache / "baretorch" / "things").iterdir()] == ["other.entry"]


@pytest.mark.parametrize("files", [{}, {"a.o": b"1\n2", "a.su": b""}])
@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_absent(files: dict[str, bytes], change: Damage, own_cache: Path) -> None:
    remember("things", "key", files)
    assert recall("things", "key") == files
    assert damage(own_cache, change) == 1
    assert recall("things", "key") is None
    remember("things", "key", files)
    assert recall("things", "key") == files


def test_an_entry_that_is_a_pipe_is_absent(own_cache: Path) -> None:
    remember("things", "key", {})
    path = own_cache / "baretorch" / "things" / "key.entry"
    path.unlink()
    os.mkfifo(path)
    assert recall("things", "key") is None


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("change", [DAMAGES["empty"], DAMAGES["one_bit"]], ids=["empty", "one_bit"])
def test_damaged_objects_are_compiled_again(change: Damage, toolchain: str, own_cache: Path, tmp_path: Path) -> None:
    """Objects, the stack use of their functions, and Zig's support routines: image and stack bound stay the same."""

    def image(folder: str) -> Image:
        return build("dummy", load_board("pico"), tmp_path / folder, SOURCES, DUMMY, "dummy_run", toolchain)

    first = image("first")
    ours = own_cache / "baretorch"
    assert damage(ours / "objects", change) > 5
    assert damage(ours / "compiler_rt", change) == (toolchain == "zig")
    damage(ours / "zig" / "o", change)
    again = image("again")
    assert again.elf.read_bytes() == first.elf.read_bytes() and again.ram == first.ram
    assert not list((ours / "zig" / "o").rglob("*.o")), "Zig does not notice damaged objects in its own cache"


def test_damaged_libraries_are_compiled_again(own_cache: Path) -> None:
    first = shared_library("npu_weights.c").read_bytes()
    for change in DAMAGES.values():
        assert damage(own_cache, change) == 2
        library = shared_library("npu_weights.c")
        assert library.read_bytes() == first
        ctypes.CDLL(str(library))


def test_damaged_objects_of_calibration_are_compiled_again(own_cache: Path) -> None:
    b = Builder("net")
    x = b.input("x", (1, 4), DType.FLOAT32)
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = b.add(Linear(), x, b.const("weight", weight), name="y")
    graph = b.graph([x], [y])
    for _ in range(2):
        with on_host(graph) as run:
            assert run([np.ones((1, 4), np.float32)])["y"].tolist() == [[6, 22, 38]]
        assert damage(own_cache / "baretorch" / "watched", DAMAGES["zeros"]) > 0

"""The cache is optional: damaged entries are rebuilt."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import baretorch
from baretorch.firmware.build import build
from baretorch.firmware.cache import cache_folder, recall, remember
from baretorch.firmware.types import Image
from baretorch.ir.graph import Builder, DType
from baretorch.machines.hooks import shared_library
from baretorch.machines.host_program import on_host
from baretorch.ops.linear import Linear
from baretorch.targets.boards import load_board
from tests.firmware.conftest import DUMMY, SOURCES

Damage = Callable[[Path], object]


def other_content(path: Path) -> None:
    """A header that looks right: a checksum, names and sizes as they were, with other bytes after them."""
    checksum, index, data = path.read_bytes().split(b"\n", 2)
    path.write_bytes(b"\n".join((checksum[::-1], index, data[::-1] or b"x")))


def entry_of_another_key(path: Path) -> None:
    """A whole entry, but that of something else."""
    remember(path.parent.name, "another", {"a.o": b"x"})
    (path.parent / "another.entry").replace(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Damage] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one_bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "other_content": other_content,
    "another_key": entry_of_another_key,
    "link": link,
    "link_to_nothing": link_to_nothing,
    "pipe": pipe,
    "folder": folder,
}


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def damage(folder: Path, change: Damage, pattern: str = "*.entry") -> int:
    """How many entries were changed."""
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    for path in files:
        change(path)
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
    if change is not folder:
        remember("things", "key", files)
        assert recall("things", "key") == files


def test_these_are_all_kinds_of_entries() -> None:
    """A further kind needs a test below, unless its entries have no files, as those of "npu"."""
    calls = re.compile(r"\bremember\(\s*\"(\w+)\"")
    found = {kind for file in Path(baretorch.__file__).parent.rglob("*.py") for kind in calls.findall(file.read_text())}
    assert found == {"objects", "compiler_rt", "programs", "watched", "npu"}


@pytest.mark.parametrize(
    ("change", "toolchain"), [*((d, "gcc") for d in DAMAGES), ("empty", "zig"), ("one_bit", "zig")]
)
def test_damaged_objects_are_compiled_again(change: str, toolchain: str, own_cache: Path, tmp_path: Path) -> None:
    """Objects, the stack use of their functions, and Zig's support routines: image and stack bound stay the same."""

    def image(folder: str) -> Image:
        return build("dummy", load_board("pico"), tmp_path / folder, SOURCES, DUMMY, "dummy_run", toolchain)

    first = image("first")
    ours = own_cache / "baretorch"
    assert damage(ours / "objects", DAMAGES[change]) > 5
    assert damage(ours / "compiler_rt", DAMAGES[change]) == (toolchain == "zig")
    damage(ours / "zig" / "o", DAMAGES[change], "*")
    again = image("again")
    assert again.elf.read_bytes() == first.elf.read_bytes() and again.ram == first.ram
    assert not list((ours / "zig" / "o").rglob("*.o")), "Zig does not notice damaged objects in its own cache"


def test_damaged_libraries_are_compiled_again(own_cache: Path) -> None:
    first = shared_library("npu_weights.c").read_bytes()
    for change in DAMAGES.values():
        assert damage(own_cache, change, "*.entry") == 1
        if change is folder:
            continue
        if change is not entry_of_another_key:
            assert damage(own_cache, change, "npu_weights*") <= 1
        library = shared_library("npu_weights.c")
        assert library.read_bytes() == first
        ctypes.CDLL(str(library))


def test_damaged_objects_of_calibration_are_compiled_again(own_cache: Path) -> None:
    b = Builder("net")
    x = b.input("x", (1, 4), DType.FLOAT32)
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = b.add(Linear(), x, b.const("weight", weight), name="y")
    graph = b.graph([x], [y])
    for change in DAMAGES.values():
        with on_host(graph) as run:
            assert run([np.ones((1, 4), np.float32)])["y"].tolist() == [[6, 22, 38]]
        assert damage(own_cache / "baretorch" / "watched", change) > 0

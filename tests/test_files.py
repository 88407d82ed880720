"""Output files appear whole or not at all, links are not followed, and one process writes to a folder at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from baretorch.errors import CompileError
from baretorch.files import write
from baretorch.files.ownership import RECORD, anything
from baretorch.files.read import need_regular, read_file
from baretorch.files.write import create, open_folder, put, put_all, scratch, stage_files
from baretorch.tune.study import own_database

OLD, NEW = "Made by Baretorch before", "Made by Baretorch now"
HOLD = """
import sys
from pathlib import Path
from baretorch.files.write import open_folder
with open_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""
WRITE = """
import sys
from pathlib import Path
from baretorch.files.write import put_all
for _ in range(40):
    put_all(Path(sys.argv[1]), {name: f"Made by Baretorch {sys.argv[2]}" for name in ("a.c", "b.c", "k/c.c")})
"""


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def holder(folder: Path) -> subprocess.Popen[str]:
    """Start a process that locks the folder until it gets a line."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "locked\n"
    return child


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_write_that_fails_changes_nothing(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.c", OLD)
    monkeypatch.setattr(os, function, full)
    with pytest.raises(CompileError, match=r"cannot write .*a\.c"):
        put(tmp_path / "a.c", NEW)
    with pytest.raises(CompileError, match="cannot write to"):
        put_all(tmp_path, {"a.c": NEW, "b.c": NEW})
    assert [path.name for path in tmp_path.iterdir()] == ["a.c"]
    assert (tmp_path / "a.c").read_text() == OLD


def test_a_write_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CompileError):
        put_all(tmp_path / "a" / "b", {"k/a.c": NEW})
    with pytest.raises(CompileError), stage_files(tmp_path / "a" / "b") as work:
        write.write_scratch(work / "k" / "a.c", NEW)
    assert list(tmp_path.iterdir()) == []


def test_files_are_on_the_disk_before_they_have_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(file: int) -> None:
        done.append("flush")
        fsync(file)

    def renamed(*arguments: object, **more: object) -> None:
        done.append("rename")
        replace(*arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    put(tmp_path / "a.c", NEW)
    assert done == ["flush", "rename", "flush"]
    done.clear()
    with stage_files(tmp_path / "out") as work:
        write.write_scratch(work / "a.c", NEW)
    assert done == ["flush", "rename", "flush"]
    done.clear()
    with scratch() as folder:
        put_all(folder, {"a.c": NEW})
    assert done == ["rename"], "what is temporary need not outlive a power cut"


def test_a_link_is_not_followed_even_if_it_appears_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all checks, as somebody could plant it just then."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.c").write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "kernels").symlink_to(tmp_path / "elsewhere")
    (folder / "b.c").symlink_to(tmp_path / "elsewhere" / "a.c")
    monkeypatch.setattr(write, "check_files", lambda *_: {})
    monkeypatch.setattr(write, "check_file", lambda *_: None)
    with pytest.raises(CompileError, match="cannot write to"):
        put_all(folder, {"kernels/a.c": NEW})
    put(folder / "b.c", NEW)
    assert (tmp_path / "elsewhere" / "a.c").read_text() == "precious"
    assert (folder / "b.c").read_text() == NEW and not (folder / "b.c").is_symlink()


BINARY = ["tiny.elf", "tiny.bin", "tiny.hex", "tiny.uf2", "tiny.map", "tuned.npz", "kernels/bt.S"]


@pytest.mark.parametrize("name", BINARY)
def test_files_without_a_mark_are_replaced_as_long_as_they_are_ours(name: str, tmp_path: Path) -> None:
    """They are in the record, even if another command wrote the other files of the folder."""
    put_all(tmp_path, {"model.h": OLD, name: b"first"})
    put_all(tmp_path, {"bt_board.h": OLD})
    put_all(tmp_path, {name: b"second", "other.bin": b"third"})
    subprocess.run(["sha256sum", "--check", "--strict", RECORD], cwd=tmp_path, check=True)
    (tmp_path / name).write_bytes(b"changed by its owner")
    with pytest.raises(CompileError, match="was not generated by Baretorch") as caught:
        put_all(tmp_path, {name: b"fourth", "other.bin": b"fourth", "model.h": NEW})
    assert caught.value.have == ("your own file, or a generated file that was edited",)
    assert (tmp_path / name).read_bytes() == b"changed by its owner" and (tmp_path / "model.h").read_text() == OLD
    (tmp_path / name).unlink()
    put_all(tmp_path, {name: b"fourth", "other.bin": b"fourth"})


@pytest.mark.parametrize("name", BINARY)
def test_files_of_others_next_to_ours_stay(name: str, tmp_path: Path) -> None:
    put_all(tmp_path, {"model.h": OLD, "bt_board.h": OLD, "tuned.toml": OLD, "kernels/bt.h": b"kernel"})
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(CompileError, match="was not generated by Baretorch"):
        put_all(tmp_path, {"model.h": NEW, name: b"ours"})
    assert (tmp_path / name).read_bytes() == b"mine" and (tmp_path / "model.h").read_text() == OLD
    put_all(tmp_path, {name: b"mine"})  # nothing is lost


def test_a_power_cut_between_two_names_leaves_files_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever name is the last that appears."""
    names = ["a.elf", "b.elf", "c.elf"]
    put_all(tmp_path, dict.fromkeys(names, b"first"))
    replace = os.replace
    for count in range(5):
        left = iter(range(count))

        def cut(*args: Any, left: Iterator[int] = left, **more: Any) -> None:
            if next(left, None) is None:
                raise OSError(errno.EIO, "power cut")
            replace(*args, **more)

        monkeypatch.setattr(os, "replace", cut)
        with suppress(CompileError):
            put_all(tmp_path, {name: f"{name} {count}" for name in names})
    monkeypatch.setattr(os, "replace", replace)
    put_all(tmp_path, dict.fromkeys(names, b"last"))
    assert len((tmp_path / RECORD).read_text().splitlines()) <= 1 + 2 * len(names)


@pytest.mark.parametrize("content", [b"mine", b"\xff\n", b"a link"])
def test_a_record_of_others_stays(content: bytes, tmp_path: Path) -> None:
    if content == b"a link":
        (tmp_path / "victim").write_text("precious")
        (tmp_path / RECORD).symlink_to(tmp_path / "victim")
    else:
        (tmp_path / RECORD).write_bytes(content)
    with pytest.raises(CompileError, match=r"sha256 was not generated by Baretorch"):
        put_all(tmp_path, {"a.elf": b"x"})
    assert [path.name for path in tmp_path.iterdir() if path.name == "a.elf"] == []


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    for name in ("../a.c", str(tmp_path / "a.c"), "k/../../a.c"):
        with pytest.raises(CompileError, match="cannot write to"), open_folder(tmp_path / "out") as folder:
            folder.write({name: NEW})
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").symlink_to(tmp_path / "nowhere")
    for name in ("a.py", "b.py"):
        if name == "b.py":
            create(tmp_path / name, "first")
        with pytest.raises(FileExistsError):
            create(tmp_path / name, "second")
    assert (tmp_path / "b.py").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "b.py"]


def test_a_new_file_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    create(tmp_path / "a.py", "first")
    with pytest.raises(FileExistsError):
        create(tmp_path / "a.py", "second")
    assert (tmp_path / "a.py").read_text() == "first"


def test_another_process_writes_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "LOCK_SECONDS", 0.1)
    with holder(tmp_path) as child:
        with pytest.raises(CompileError) as error:
            put(tmp_path / "a.c", NEW)
        child.kill()
    assert error.value.render() == (
        f"error: another process writes to {tmp_path}\n"
        "  have  it did not finish within 0.1 s\n"
        "  try   wait for it, or choose another place with --out"
    )
    put(tmp_path / "a.c", NEW)  # the lock of a process that is dead is none


def test_a_second_process_waits(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        second = threading.Thread(target=put, args=(tmp_path / "a.c", NEW))
        second.start()
        second.join(0.2)
        assert not (tmp_path / "a.c").exists()
        child.communicate("go on\n")
    second.join()
    assert (tmp_path / "a.c").read_text() == NEW


def test_files_of_one_process_are_together(tmp_path: Path) -> None:
    """Two write the same files over and over: in the end all are of one of them."""
    children = [subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path), name]) for name in ("one", "two")]
    assert [child.wait() for child in children] == [0, 0]
    assert len({path.read_text() for path in tmp_path.rglob("*.c")}) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.c", "b.c", "c.c", "k"]


def test_only_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "to_pipe").symlink_to("pipe")
    assert read_file(tmp_path / "link") == b"text" and read_file(tmp_path / "file", 2) == b"te"
    with pytest.raises(OSError, match="a symbolic link, not a file"):
        read_file(tmp_path / "link", follow=False)
    for name, kind in (("pipe", "a pipe, not a file"), ("to_pipe", "a pipe, not a file"), (".", "Is a directory")):
        for read in (read_file, need_regular):
            with pytest.raises(OSError, match=kind):
                read(tmp_path / name)
    with pytest.raises(OSError, match="a device, not a file"):
        read_file(Path("/dev/zero"))


@pytest.mark.parametrize("name", ["study.db", "study.db-journal", "study.db-wal"])
def test_a_database_of_others_stays(name: str, tmp_path: Path) -> None:
    """SQLite would follow a link."""
    assert own_database(tmp_path) == f"sqlite:///{tmp_path / 'study.db'}"
    (tmp_path / name).symlink_to(tmp_path / "victim")
    with pytest.raises(CompileError, match=rf"{name} was not generated by Baretorch"):
        own_database(tmp_path)


def test_intermediate_files_follow_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        write.write_scratch(tmp_path / "link", "x")
    assert not (tmp_path / "victim").exists()


def test_a_cache_entry_may_replace_anything(tmp_path: Path) -> None:
    (tmp_path / "entry").symlink_to(tmp_path / "victim")
    write.store_entry(tmp_path / "entry", b"x")
    assert anything(b"") and not (tmp_path / "victim").exists() and (tmp_path / "entry").read_bytes() == b"x"

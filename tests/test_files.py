"""Output files appear whole or not at all, links are not followed, and one process writes to a folder at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from baretorch import outputs
from baretorch.errors import CompileError
from baretorch.inputs import need_regular, read_file
from baretorch.outputs import create, opened, put, put_all, scratch, staged
from baretorch.ownership import anything
from baretorch.tune.database import own_database

OLD, NEW = "Made by Baretorch before", "Made by Baretorch now"
HOLD = """
import sys
from pathlib import Path
from baretorch.outputs import opened
with opened(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""
WRITE = """
import sys
from pathlib import Path
from baretorch.outputs import put_all
for _ in range(40):
    put_all(Path(sys.argv[1]), {name: f"Made by Baretorch {sys.argv[2]}" for name in ("a.c", "b.c", "k/c.c")})
"""


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that has locked the folder, until it is told to go on."""
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
    with pytest.raises(CompileError), staged(tmp_path / "a" / "b") as work:
        outputs.write_scratch(work / "k" / "a.c", NEW)
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
    with staged(tmp_path / "out") as work:
        outputs.write_scratch(work / "a.c", NEW)
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
    monkeypatch.setattr(outputs, "check_files", lambda *_: None)
    monkeypatch.setattr(outputs, "check_file", lambda *_: None)
    with pytest.raises(CompileError, match="cannot write to"):
        put_all(folder, {"kernels/a.c": NEW})
    put(folder / "b.c", NEW)
    assert (tmp_path / "elsewhere" / "a.c").read_text() == "precious"
    assert (folder / "b.c").read_text() == NEW and not (folder / "b.c").is_symlink()


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    for name in ("../a.c", str(tmp_path / "a.c"), "k/../../a.c"):
        with pytest.raises(CompileError, match="cannot write to"), opened(tmp_path / "out") as folder:
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
    monkeypatch.setattr(outputs, "LOCK_SECONDS", 0.1)
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
    with pytest.raises(CompileError, match=rf"{name} is not a file that Baretorch made"):
        own_database(tmp_path)


def test_intermediate_files_follow_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        outputs.write_scratch(tmp_path / "link", "x")
    assert not (tmp_path / "victim").exists()


def test_a_cache_entry_may_replace_anything(tmp_path: Path) -> None:
    (tmp_path / "entry").symlink_to(tmp_path / "victim")
    outputs.store(tmp_path / "entry", b"x")
    assert anything(b"") and not (tmp_path / "victim").exists() and (tmp_path / "entry").read_bytes() == b"x"

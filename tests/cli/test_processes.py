"""A command that is interrupted, or that meets a full disk, leaves no partial files."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PTE = Path(__file__).parents[1] / "frontends" / "data" / "sine.pte"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


COMPILER = 'case "$1" in --version) echo gcc 1.0; exit;; esac\nsleep 1000 & touch {began}\nwait'  # it has a child
EMULATOR = "touch {began}\nexec sleep 1000"


class Place:
    """Folders to work in, an environment that names them, and programs that never end in place of the real ones."""

    def __init__(self, root: Path) -> None:
        self.work, self.temporary, self.cache, self.programs = (root / n for n in ("work", "tmp", "cache", "bin"))
        for folder in (self.work, self.temporary, self.cache, self.programs):
            folder.mkdir()
        self.mark = f"baretorch_test={root}"
        name, _, value = self.mark.partition("=")
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        places = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.cache), "PATH": path, name: value}
        self.environment = os.environ | places

    def endless(self, program: str, body: str) -> None:
        path = self.programs / program
        path.write_text(f"#!/bin/sh\n{body.format(began=self.programs / 'began')}\n")
        path.chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "baretorch", *arguments]

    def processes(self) -> list[str]:
        """Return the processes that still run with this environment."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
        return found

    def left(self) -> list[str]:
        """Files and folders, but for whole entries of the cache."""
        made = [p for folder in (self.work, self.temporary, self.cache) for p in folder.rglob("*")]
        kept = {".entry", ".so"}
        return [str(p) for p in made if not (p.is_relative_to(self.cache) and (p.is_dir() or p.suffix in kept))]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    assert not made.processes()


def end(place: Place, number: int, *arguments: str) -> int:
    """Start a command, send it a signal as soon as an endless program runs; its exit code."""
    child = subprocess.Popen(
        place.command(*arguments),
        cwd=place.work,
        env=place.environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )
    deadline = time.monotonic() + 60
    while not (place.programs / "began").exists():
        assert time.monotonic() < deadline and child.poll() is None, child.communicate()
        time.sleep(0.02)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert "Traceback" not in said
    return child.returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
def test_while_compilers_run(place: Place, number: int, code: int) -> None:
    place.endless("arm-none-eabi-gcc", COMPILER)
    assert end(place, number, "build", str(PTE), "--board", "pico") == code
    assert place.left() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
def test_while_the_emulator_runs(place: Place, number: int, code: int) -> None:
    place.endless("qemu-system-arm", EMULATOR)
    assert end(place, number, "run", str(PTE), "--board", "mps2-an386") == code
    assert all("/work/build" in path for path in place.left())  # the image was complete


def limit(bytes: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))


@pytest.mark.parametrize("verb", ["build", "compile", "run"])
def test_no_room(place: Place, verb: str) -> None:
    """A limit on the size of files is what a full disk is, without a disk. Some files fit."""
    board = "host" if verb == "run" else "pico"
    done = subprocess.run(
        place.command(
            verb, str(PTE.with_name("cnn.pte")), "--board", board, *(("--out", "a/b") if verb != "run" else ())
        ),
        cwd=place.work,
        env=place.environment,
        preexec_fn=limit(3000),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: cannot write: File ")
    assert "--out for another folder" in done.stderr
    assert place.left() == []


def test_a_closed_pipe(place: Place) -> None:
    read, write = os.pipe()
    os.close(read)
    child = subprocess.Popen(place.command("boards"), cwd=place.work, env=place.environment, stdout=write)
    os.close(write)
    assert child.wait(60) == 141

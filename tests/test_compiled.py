"""Results of compilers are reused for the same files, and only for these."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from baretorch.firmware import toolchain
from baretorch.firmware.cache import cache_folder
from tests import compiled

COMMAND = ("gcc", "-O1", "-fstack-usage", "-Inear", "-c", "a.c", "-o", "a.o")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that are really run, with an empty cache."""
    ran: list[Sequence[str]] = []
    real = compiled._RUN

    def run(command: Sequence[str], folder: Path) -> object:
        ran.append(command)
        return real(command, folder)

    assert toolchain._run is compiled.run_once
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "_RUN", run)
    return ran


def write(folder: Path, number: int = 1, included: int = 2, text: str = "") -> Path:
    (folder / "near").mkdir(parents=True, exist_ok=True)
    (folder / "near" / "b.h").write_text(f'#include "c.h"\n#define B {number}\n')
    (folder / "near" / "c.h").write_text(f"#define C {included}\n")
    (folder / "a.c").write_text(f'#include <stdint.h>\n  # include "b.h"\nint a(void) {{ return B + C; }}\n{text}')
    return folder


def test_the_same_files_are_compiled_once(runs: list[Sequence[str]], tmp_path: Path) -> None:
    for folder in (write(tmp_path / "one"), write(tmp_path / "two")):
        assert toolchain._run(COMMAND, folder).returncode == 0
        assert sorted(p.name for p in folder.iterdir()) == ["a.c", "a.o", "a.su", "near"]
    assert len(runs) == 1
    assert (tmp_path / "one/a.o").read_bytes() == (tmp_path / "two/a.o").read_bytes()


@pytest.mark.parametrize("change", [{"number": 3}, {"included": 3}, {"text": "int b;\n"}], ids=str)
def test_other_files_are_compiled(change: dict[str, object], runs: list[Sequence[str]], tmp_path: Path) -> None:
    folder = write(tmp_path / "here")
    toolchain._run(COMMAND, folder)
    write(folder, **change)  # type: ignore[arg-type]
    toolchain._run(COMMAND, folder)
    assert len(runs) == 2


def test_other_options_and_compilers_are_others(runs: list[Sequence[str]], tmp_path: Path) -> None:
    folder = write(tmp_path / "here")
    for command in (COMMAND, ("gcc", "-O2", *COMMAND[2:]), ("arm-none-eabi-gcc", *COMMAND[1:])):
        assert toolchain._run(command, folder).returncode == 0
    assert len(runs) == 3


@pytest.mark.parametrize("text", ["#error no\n", "#warning hm\n"])
def test_messages_are_repeated(text: str, runs: list[Sequence[str]], tmp_path: Path) -> None:
    folder = write(tmp_path / "here", text=text)
    said = [toolchain._run(COMMAND, folder).stderr for _ in range(2)]
    assert len(runs) == 2 and said[0] == said[1] and text[1:6] in said[0]


def test_programs_run(runs: list[Sequence[str]], tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = write(tmp_path / name, text="int main(void) { return a() - 3; }\n")
        toolchain._run(("gcc", "-Inear", "a.c", "-o", "program"), folder)
        assert subprocess.run([folder / "program"], check=False).returncode == 0
    assert len(runs) == 1


def test_what_was_not_used_for_longest_goes(
    runs: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        toolchain._run(COMMAND, write(tmp_path / str(number), number))
    entries = sorted((cache_folder() / compiled.KIND).iterdir(), key=lambda p: p.stat().st_mtime_ns)
    toolchain._run(COMMAND, write(tmp_path / "again", 0))
    assert len(runs) == 3
    monkeypatch.setattr(compiled, "LIMIT", sum(p.stat().st_size for p in entries) - 1)
    compiled.forget_oldest()
    assert [p.exists() for p in entries] == [True, False, True]

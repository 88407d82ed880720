"""An emulator is chosen or its absence is reported, and no process survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines import open_machine
from baretorch.machines.hooks import shared_library
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.core import HOOKS
from baretorch.targets.boards import load_board
from tests.machines.images import RUN, image

DATA = bytes(range(16))


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def on_board(board: str) -> Image:
    return replace(image("mps2-an386"), board=load_board(board))


def test_the_first_emulator_of_the_board_is_the_default() -> None:
    machine = open_machine(image("mps2-an386"), RUN)
    machine.close()
    assert machine.name == load_board("mps2-an386").emulators[0]


def test_without_qemu_the_next_emulator_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = image("mps2-an386")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    machine = open_machine(replace(made, board=replace(made.board, emulators=("qemu", "unicorn"))), RUN)
    machine.close()
    assert machine.name == "unicorn"


def test_an_emulator_that_cannot_run_the_board() -> None:
    with pytest.raises(CompileError) as error:
        open_machine(image("pico"), RUN, "qemu")
    assert error.value.render() == "error: the emulator qemu cannot run board pico\n  need  one of: unicorn, rp2040js"


def test_qemu_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = image("mps3-an547")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompileError) as error:
        open_machine(made, RUN)
    assert error.value.render() == (
        "error: board mps3-an547 needs QEMU\n"
        "  need  the program qemu-system-arm\n"
        "  try   `apt-get install qemu-system-arm`"
    )


def test_a_board_without_emulator() -> None:
    made = on_board("corstone-320")
    with pytest.raises(CompileError, match="no emulator runs board corstone-320") as error:
        open_machine(replace(made, board=replace(made.board, emulators=())), RUN)
    assert error.value.try_ == ("use a board with the same CPU, cortex-m85: corstone-320",)
    with pytest.raises(CompileError, match="no emulator runs board pico2-riscv") as error:
        open_machine(on_board("pico2-riscv"), RUN)
    assert error.value.try_ == ("use a board with the same CPU, hazard3: virt-hazard3",)


@pytest.mark.parametrize(("board", "emulator"), [("mps2-an386", "qemu"), ("pico", "rp2040js"), ("host", "native")])
def test_close_ends_the_process(board: str, emulator: str) -> None:
    machine = open_machine(image(board), RUN, emulator)
    pid: int = machine.pid  # type: ignore[attr-defined]
    assert alive(pid)
    machine.close()
    machine.close()
    assert not alive(pid)


@pytest.mark.parametrize(("board", "emulator"), [("mps2-an386", "qemu"), ("host", "native")])
def test_forgetting_a_machine_ends_the_process(board: str, emulator: str) -> None:
    machine = open_machine(image(board), RUN, emulator)
    pid: int = machine.pid  # type: ignore[attr-defined]
    del machine
    assert ends(pid)


ORPHAN = """\
import sys
from dataclasses import replace
from pathlib import Path
from baretorch.machines.link import Link
from baretorch.machines import open_machine
from tests.machines.images import RUN, image
machine = open_machine(image({board!r}, {body!r}), RUN, {emulator!r})
link = Link(machine)
link.hello()
print(machine.pid, flush=True)
try:
    link.run([bytes(16)], timeout=1)
except Exception:
    print("hangs", flush=True)
sys.stdin.read()
"""
ENDLESS = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    while (*(const volatile uint8_t *)from == 0) {
    }
    *(volatile uint8_t *)to = 1;
}"""


@pytest.mark.parametrize(("board", "emulator"), [("mps2-an386", "qemu"), ("pico", "rp2040js"), ("host", "native")])
def test_a_killed_parent_leaves_no_process(board: str, emulator: str, tmp_path: Path) -> None:
    """Not even an image in an endless loop, when there was no chance to clean up."""
    program = ORPHAN.format(board=board, body=ENDLESS, emulator=emulator)
    folder = Path(__file__).parent.parent.parent
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "hangs\n"
        assert alive(pid)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert ends(pid, 60)


@pytest.mark.parametrize(("board", "emulator"), [("mps2-an386", "qemu"), ("host", "native")])
def test_a_process_that_ends_is_a_fault(board: str, emulator: str) -> None:
    machine = open_machine(image(board), RUN, emulator)
    link = Link(machine)
    link.hello()
    os.kill(machine.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    with pytest.raises(DeviceFault, match="the image's process ended by signal 9"):
        link.run([DATA])
    machine.close()


def test_output_of_qemu_is_reported() -> None:
    made = image("mps2-an386")
    machine = open_machine(replace(made, board=replace(made.board, qemu_machine="mps9")), RUN, "qemu")
    with pytest.raises(DeviceFault) as error:
        Link(machine).hello()
    assert "unsupported machine type" in error.value.render()


def test_a_closed_unicorn_machine_is_an_error() -> None:
    machine = open_machine(image("pico"), RUN)
    machine.close()
    with pytest.raises(DeviceFault, match="closed"):
        machine.read(1)


@pytest.mark.parametrize(
    ("compiler", "sources"),
    [("cc", HOOKS), ("zig", ("qemu.c",)), pytest.param("zig", HOOKS, marks=pytest.mark.slow)],
)
def test_hooks_are_compiled_once(
    sources: tuple[str, ...], compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if compiler == "zig":
        monkeypatch.setenv("PATH", "")
    library = shared_library(*sources)
    made = library.stat().st_mtime_ns
    assert shared_library(*sources) == library and library.stat().st_mtime_ns == made
    assert library.is_relative_to(tmp_path) and library.read_bytes()[:4] == b"\x7fELF"

"""What gdb talks to: an emulator that waits for it, or a probe at a real board."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from baretorch.errors import CompileError
from baretorch.escape import reported
from baretorch.firmware.elf import ARM
from baretorch.firmware.types import Image
from baretorch.machines import choose_emulator
from baretorch.machines.hardware.flash import pyocd_command
from baretorch.machines.hardware.serial import SerialMachine
from baretorch.machines.types import Machine
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

if TYPE_CHECKING:
    from baretorch.machines.qemu.machine import QemuMachine
    from baretorch.machines.rp2040js.machine import Rp2040JsMachine

EMULATORS = ("unicorn", "qemu", "rp2040js")  # that gdb can look into
START_SECONDS = 10.0  # for a server to listen


@dataclass(frozen=True)
class Server:
    """A place for gdb's `target remote`, what else gdb does then, and what the model's inputs go to."""

    target: str
    begin: tuple[str, ...]
    machine: Machine
    close: Callable[[], object]  # ends what the machine does
    start: Callable[[], None] = lambda: None  # in the thread that talks with the image, before it does
    end: Callable[[], None] = lambda: None  # there, when the image runs no more


def debug_emulator(board: Board, emulator: str | None) -> str:
    """Which emulator; CompileError with boards that can if there is none that gdb can look into."""
    able = [e for e in board.emulators if e in EMULATORS]
    if emulator is None and able:
        return next((e for e in able if e == choose_emulator(board)), able[0])
    if emulator in able:
        return emulator
    boards = [name for name in board_names() if set(load_board(name).emulators) & set(EMULATORS)]
    raise CompileError(
        f"gdb cannot look into {emulator}" if emulator else f"no emulator of {board.name} lets gdb look into it",
        need=f"{' or '.join(EMULATORS)}, which {', '.join(boards)} have",
    )


@contextmanager
def emulated(image: Image, run_symbol: str, emulator: str, folder: Path) -> Iterator[Server]:
    """An emulator that waits for gdb at a socket in `folder` before the first instruction."""
    path = folder / "gdb"
    if emulator != "unicorn":
        process = _process(image, run_symbol, emulator, path)

        def kill() -> None:
            os.kill(process.pid, signal.SIGKILL)

        try:
            _wait(path.exists, emulator)
            begin = (_stop_at_faults(image.board),) if emulator == "qemu" else ()
            yield Server(str(path), begin, process, kill, end=kill)  # gdb has seen it stop at a fault
        finally:
            process.close()
        return
    from baretorch.machines.unicorn.gdb_stub import GdbStub
    from baretorch.machines.unicorn.machine import UnicornMachine

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        machine = UnicornMachine(image, run_symbol)
        stub = GdbStub(listener, image.board.chip.cpu.has_fpu)
        yield Server(str(path), (), machine, stub.close, lambda: stub.attach(machine), stub.ended)


def _stop_at_faults(board: Board) -> str:
    """The image's own handler goes on with its report, and gdb would not know."""
    return "break *bt_fault_entry" if board.chip.cpu.elf_machine == ARM else "break bt_trap"


def _process(image: Image, run_symbol: str, emulator: str, path: Path) -> QemuMachine | Rp2040JsMachine:
    """An emulator that is a program of its own, and waits for gdb itself."""
    if emulator == "rp2040js":
        from baretorch.machines.rp2040js.machine import Rp2040JsMachine

        return Rp2040JsMachine(image, run_symbol, gdb=path)
    from baretorch.machines.qemu.machine import QemuMachine

    return QemuMachine(image, run_symbol, path)


@contextmanager
def probed(image: Image, probe: str, port: str) -> Iterator[Server]:
    """A board with a probe; the image is put on it, and its inputs go through a serial port."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        number = free.getsockname()[1]
    command = pyocd(image.board, number) if probe == "pyocd" else openocd(image.board, number)
    # OpenOCD prefers scripts below the working folder to its own of that name, and runs them.
    folder = Path.cwd().anchor if probe == "openocd" else None
    begin = ("monitor reset halt", "load", "monitor reset halt", _stop_at_faults(image.board))
    with (
        tempfile.TemporaryFile() as said,  # a pipe that nobody reads would stop the server when it is full
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        ) as server,
    ):
        try:
            _wait(lambda: _listens(number), probe, server, said)
            machine = SerialMachine(port, image.board.chip.uart.baud)
            yield Server(f"localhost:{number}", begin, machine, machine.close)
        finally:
            server.kill()


def pyocd(board: Board, port: int) -> list[str]:
    program = pyocd_command()
    if board.pyocd_target is None:
        raise CompileError(f"pyOCD does not know {board.name}", need="a board whose TOML has pyocd_target")
    if program is None:
        raise CompileError("--probe pyocd needs pyOCD", try_='`pip install "baretorch[flash]"`')
    return [*program, "gdbserver", "--target", board.pyocd_target, "--port", str(port)]


def openocd(board: Board, port: int) -> list[str]:
    program = shutil.which("openocd")
    settings = board.openocd
    if settings is None:
        known = [name for name in board_names() if load_board(name).openocd is not None]
        raise CompileError(
            f"OpenOCD's settings for {board.name} are not known here",
            need=f"[openocd] in its TOML, or one of {', '.join(known)}",
        )
    if program is None:
        raise CompileError("--probe openocd needs OpenOCD", try_="`apt-get install openocd`")
    files = ["-f", settings.interface, "-f", settings.target]
    return [program, *files, "-c", f"gdb_port {port}", "-c", "telnet_port disabled", "-c", "tcl_port disabled"]


def _listens(port: int) -> bool:
    """Whether somebody has it: to ask him would be to attach to the board, and leave it."""
    with socket.socket() as one:
        try:
            one.bind(("localhost", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _wait(
    there: Callable[[], bool],
    who: str,
    server: subprocess.Popen[bytes] | None = None,
    said: IO[bytes] | None = None,
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not there():
        if server is not None and server.poll() is not None and said is not None:
            said.seek(0)
            raise CompileError(f"{who} ended", have=[reported(line) for line in said.read().splitlines()[-5:]])
        if time.monotonic() > deadline:
            raise CompileError(f"{who} does not wait for gdb", have=f"nothing within {START_SECONDS:g} s")
        time.sleep(0.02)

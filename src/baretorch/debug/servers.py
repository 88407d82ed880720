"""Start a server for gdb: an emulator, or a debug probe at a real board."""

from __future__ import annotations

import errno
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from baretorch.errors import CompileError
from baretorch.escape import plain_text
from baretorch.firmware.types import Image
from baretorch.machines import choose_emulator, find_driver
from baretorch.machines.gdb import stop_at_faults, wait_until
from baretorch.machines.hardware.flash import pyocd_command
from baretorch.machines.hardware.serial import SerialMachine
from baretorch.machines.types import GdbServer
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import EMULATORS, Board


def debug_emulator(board: Board, emulator: str | None) -> str:
    """Return the emulator to debug on. CompileError if gdb cannot debug on it, with the boards on which it can."""
    supported = [name for name in EMULATORS if find_driver(name).debug is not None]
    able = [name for name in board.emulators if name in supported]
    if emulator is None and able:
        return next((name for name in able if name == choose_emulator(board)), able[0])
    if emulator in able:
        return emulator
    boards = [name for name in board_names() if set(load_board(name).emulators) & set(supported)]
    raise CompileError(
        f"gdb cannot look into {emulator}" if emulator else f"no emulator of {board.name} lets gdb look into it",
        need=f"{' or '.join(supported)}, which {', '.join(boards)} have",
    )


def start_emulator(image: Image, run_symbol: str, emulator: str, folder: Path) -> AbstractContextManager[GdbServer]:
    """Boot the image on an emulator that waits for gdb at a socket in `folder` before the first instruction."""
    debug = find_driver(emulator).debug
    assert debug is not None, emulator  # debug_emulator
    return debug(image, run_symbol, folder / "gdb")


@contextmanager
def start_probe(image: Image, probe: str, port: str) -> Iterator[GdbServer]:
    """Load the image to a board with a probe. Its inputs are sent through a serial port."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        number = free.getsockname()[1]
    command = pyocd(image.board, number) if probe == "pyocd" else openocd(image.board, number)
    # OpenOCD prefers scripts below the working folder to its own of that name, and runs them.
    folder = Path.cwd().anchor if probe == "openocd" else None
    begin = ("monitor reset halt", "load", "monitor reset halt", stop_at_faults(image.board))
    with (
        tempfile.TemporaryFile() as output,  # an unread pipe would block the server when it is full
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        ) as server,
    ):
        try:
            wait_until(lambda: _listens(number), probe, lambda: _check(server, probe, output))
            machine = SerialMachine(port, image.board.chip.uart.baud)
            yield GdbServer(f"localhost:{number}", begin, machine, machine.close)
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
    """Return whether a process listens on the port, without a connection, which would attach to the board."""
    with socket.socket() as one:
        try:
            one.bind(("localhost", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _check(server: subprocess.Popen[bytes], name: str, output: IO[bytes]) -> None:
    """Raise CompileError with the server's last lines if it has ended."""
    if server.poll() is not None:
        output.seek(0)
        raise CompileError(f"{name} ended", have=[plain_text(line) for line in output.read().splitlines()[-5:]])

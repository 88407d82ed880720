"""Model a Cortex-M chip on Unicorn: clocks, resets, flash, console, interrupts, DMA, and a second core."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.types import Driver, GdbServer, Machine, Tool
from baretorch.targets.types import Board


def _need(board: Board) -> None:
    """Raise CompileError with the remedy if the package is not installed."""
    if find_spec("unicorn") is None:
        raise CompileError(
            f"board {board.name} needs the emulator Unicorn",
            need="the package unicorn",
            try_=f"`{DRIVER.tools[0].get}`",
        )


def _open(image: Image, run_symbol: str, timed: bool) -> Machine:
    from baretorch.machines.unicorn.machine import UnicornMachine

    return UnicornMachine(image, run_symbol, timed=timed)


@contextmanager
def _debug(image: Image, run_symbol: str, path: Path) -> Iterator[GdbServer]:
    from baretorch.machines.unicorn.gdb_stub import GdbStub
    from baretorch.machines.unicorn.machine import UnicornMachine

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        machine = UnicornMachine(image, run_symbol)
        stub = GdbStub(listener, image.board.chip.cpu.has_fpu)
        yield GdbServer(str(path), (), machine, stub.close, lambda: stub.attach(machine), stub.report_end)


DRIVER = Driver(
    _open,
    need=_need,
    debug=_debug,
    usb=True,
    tools=(Tool("unicorn", "package", "emulates Cortex-M boards", "pip install unicorn==2.1.4", needed=True),),
)

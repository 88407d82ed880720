"""Arm's Fixed Virtual Platforms, if they are installed: closed programs that contain a chip, its core and its NPU.

UART0 is a terminal of the platform, at a TCP port that the platform prints when it starts. Bytes pass through it
unchanged. Nothing is counted, because an FVP does not report how many instructions it executed between two addresses.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, NoReturn

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.process import CHUNK, Process
from baretorch.machines.types import DeviceFault, DeviceHang, Driver
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.targets.types import Board, Fvp

START_SECONDS = 60.0  # until it prints where its terminal is: it is a large program, and may need a licence
READY_SECONDS = 5.0  # until the image reports that it is ready
TEXT_CHARACTERS = 1 << 16  # characters of its own text


class FvpMachine(Process):
    """An image on an FVP."""

    name = "fvp"

    def __init__(self, image: Image) -> None:
        fvp, program = need_fvp(image.board)
        ends = ExitStack()
        super().__init__([program, *arguments(image, fvp)], keep=(ends,))
        self._words = _Words(self._stdout)
        line = os.fdopen(self._connect(fvp).detach(), "r+b", buffering=0)
        self._stdin = self._stdout = ends.enter_context(line)
        self._listens = False  # bytes that come before the image has set up its UART may be lost
        self._companion = self._words

    def read(self, timeout: float) -> bytes:
        """Read like the other machines, but stop waiting for text if the image was ready before the line was open."""
        if not self._listens:
            try:
                return super().read(min(timeout, READY_SECONDS))
            except DeviceHang:
                self._listens = True
        return super().read(timeout)

    def _connect(self, fvp: Fvp) -> socket.socket:
        """Connect to the terminal as soon as it exists."""
        terminal = fvp.terminal.rpartition(".")[2]
        deadline = time.monotonic() + START_SECONDS
        while (found := re.search(rf"\b{terminal}: Listening .* on port (\d{{1,5}})\b", self._words.text)) is None:
            if not select.select([self._words], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.close()
                raise DeviceFault(f"{fvp.program} does not report where its terminal is", have=self._words.last())
            self._words.look()
            if self._words.over:
                self._raise_ended()
        try:
            line = socket.create_connection(("127.0.0.1", int(found[1])), timeout=START_SECONDS)
        except (OSError, OverflowError) as error:
            self.close()
            raise DeviceFault(f"{fvp.program}'s terminal does not respond", have=f"port {found[1]}: {error}") from None
        line.setblocking(False)
        return line

    def _raise_ended(self) -> NoReturn:
        try:
            super()._raise_ended()
        except DeviceFault as fault:
            raise DeviceFault(fault.what, have=[*self._words.last(), *fault.have]) from None


class _Words:
    """The platform's own output, which is separate from the image's."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.text = ""
        self.over = False

    def fileno(self) -> int:
        return self._pipe.fileno()

    def patience(self) -> float | None:
        return None

    def look(self) -> None:
        came = os.read(self._pipe.fileno(), CHUNK)
        self.text = (self.text + came.decode(errors="replace"))[-TEXT_CHARACTERS:]
        self.over = not came
        if self.over:
            time.sleep(0.01)  # its end of the line is about to close, too

    def last(self) -> list[str]:
        return self.text.strip().splitlines()[-10:]


def need_fvp(board: Board) -> tuple[Fvp, str]:
    """Return the platform and the path of its program. Raise CompileError with the remedy if it is not installed."""
    assert board.fvp is not None  # targets/checks.py
    program = shutil.which(board.fvp.program)
    if program is None:
        raise CompileError(
            f"board {board.name}: Arm's FVP is not installed",
            need=f"the program {board.fvp.program} on PATH",
            try_="download it from Arm (Ecosystem FVPs), or leave --emulator out",
        )
    return board.fvp, program


def arguments(image: Image, fvp: Fvp) -> Iterator[str]:
    """Yield the program's arguments: the image, its start, the NPU, and the terminal of UART0."""
    chip = image.board.chip
    settings = [f"{fvp.terminal}.{what}" for what in ("start_telnet=0", "mode=raw", "quiet=0")]
    settings += [f"{name}=1" for name in fvp.on]
    settings += [f"{name}={chip.memory(chip.code).origin:#x}" for name in fvp.vectors]
    if chip.npu is not None and fvp.npu is not None:
        settings.append(f"{fvp.npu}.num_macs={ACCELERATORS_BY_NAME[chip.npu.accelerator].macs}")
    yield from ("-a", str(image.elf))
    for setting in settings:
        yield from ("-C", setting)


DRIVER = Driver(
    lambda image, run_symbol, timed: FvpMachine(image),
    need=need_fvp,
)

"""Emulators and probes that wait for gdb."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from baretorch.errors import CompileError
from baretorch.firmware.elf import ARM
from baretorch.machines.types import DeviceFault, GdbServer, Machine
from baretorch.targets.types import Board

START_SECONDS = 10.0  # for a server to listen


class PacketBuffer:
    """Received bytes of gdb's remote protocol."""

    def __init__(self) -> None:
        self.unread = b""

    def take(self) -> str | None:
        """Return the next packet, if all of it has arrived."""
        begin = self.unread.find(b"$")
        end = self.unread.find(b"#", begin)
        if not 0 <= begin < end or len(self.unread) < end + 3:
            return None
        data, self.unread = self.unread[begin + 1 : end], self.unread[end + 3 :]
        return data.decode("latin-1")


def encode_packet(text: str) -> bytes:
    """Return the bytes of a packet, with its checksum."""
    data = text.encode("latin-1")
    return b"$%b#%02x" % (data, sum(data) % 256)


class DebuggerGone(DeviceFault):
    """gdb has ended, and the emulation with it."""


class ChildMachine(Machine, Protocol):
    """An emulator that is a child process."""

    @property
    def pid(self) -> int: ...


def stop_at_faults(board: Board) -> str:
    """Return gdb's command for a stop in the image's own handler, which would continue with its report."""
    return "break *bt_fault_entry" if board.chip.cpu.elf_machine == ARM else "break bt_trap"


@contextmanager
def serve(machine: ChildMachine, path: Path, *begin: str) -> Iterator[GdbServer]:
    """Run an emulator that is a program of its own and waits for gdb at the socket `path`."""

    def kill() -> None:
        os.kill(machine.pid, signal.SIGKILL)

    try:
        wait_until(path.exists, machine.name)
        yield GdbServer(str(path), begin, machine, kill, end=kill)  # gdb has seen it stop at a fault
    finally:
        machine.close()


def wait_until(listens: Callable[[], bool], who: str, check: Callable[[], None] = lambda: None) -> None:
    """Wait until the server `who` listens; `check` raises an error if it has ended."""
    deadline = time.monotonic() + START_SECONDS
    while not listens():
        check()
        if time.monotonic() > deadline:
            raise CompileError(f"{who} does not wait for gdb", have=f"nothing within {START_SECONDS:g} s")
        time.sleep(0.02)

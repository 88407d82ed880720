"""What an emulator offers: a byte stream to the running image, and exact instruction counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from baretorch.errors import CompileError


class DeviceFault(CompileError):
    """The image stopped: a fault, an exit, a jump into nowhere."""


class DeviceHang(CompileError):
    """The image did not answer within the time limit."""


@dataclass(frozen=True)
class Block:
    """A stretch of code without branches in between, and how often a call of the run function executed it.

    `site` is 0 in the run function itself; in all that it calls, and what that calls, it is the address behind the
    call. `taken` is how often something else followed than the next instruction.
    """

    site: int
    address: int
    instructions: int
    executed: int
    taken: int


class Machine(Protocol):
    """A running image, emulated or real. Closing it ends the emulation."""

    name: str  # "unicorn", "qemu", "native", "serial"

    def write(self, data: bytes) -> None:
        """Send bytes to the image's UART."""

    def read(self, timeout: float) -> bytes:
        """Bytes the image has sent since the last call, at least one; DeviceHang after `timeout` seconds,
        DeviceFault if the image stopped for good."""

    def instructions(self) -> tuple[int, ...]:
        """Executed instructions of each call of the run function so far; empty if not counted."""

    def blocks(self) -> tuple[Block, ...]:
        """What the last call of the run function executed, in the order of its visits to sites; empty if not known."""

    def close(self) -> None: ...

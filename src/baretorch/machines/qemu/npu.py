"""An emulated Ethos-U next to one of QEMU's machines, which have none: it is attached by two of QEMU's interfaces.

QEMU's gdb stub stops the core before each access to the NPU's page. The access is executed here, and the core continues
after it. QEMU's test interface drives the interrupt line. The image does not notice any of that.

QEMU fails if it is stopped from outside just when an access stops it. So an NPU with an interrupt computes when the
core has read that it runs: the core may sleep next, and is woken. A core whose NPU has no interrupt reads its status
until it is done.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.firmware.thumb import decode_transfer
from baretorch.machines.npu.device import SIZE, Misuse, NpuBank, NpuDevice
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.memory import NpuRegion
from baretorch.machines.qemu.gdb_client import PC, GdbClient
from baretorch.machines.types import DeviceFault
from baretorch.npu.accelerators import Accelerator

PAGE = 1 << 11  # bytes that are fetched at once
SILENCE = 0.5  # seconds without an access, after which the core is assumed to sleep
LINES = {  # of QEMU's machines: from which number on which device takes interrupts, and by which inputs
    "mps3-an547": (
        (32, "/machine/iotkit", "EXP_IRQ"),
        (0, "/machine/iotkit/cluster0/armv7m0", "unnamed-gpio-in"),
    ),
}


@dataclass(frozen=True)
class NpuPlace:
    """The address, interrupt and memories of the NPU."""

    base: int
    irq: int | None
    banks: tuple[tuple[int, int], ...]  # origin and size of the memories that it reaches


class _Copy:
    """A copy of a memory of QEMU, fetched page by page on demand."""

    def __init__(self, stub: GdbClient, origin: int, size: int) -> None:
        self._stub, self._origin = stub, origin
        self.region = NpuRegion(np.zeros(size, np.uint8), fetch=self._fetch, wrote=self._wrote)
        pages = -(-size // PAGE)
        self._here, self._changed = np.zeros(pages, np.bool_), np.zeros(pages, np.bool_)

    def forget(self) -> None:
        self._here[:] = False

    def _fetch(self, low: int, end: int) -> None:
        for page in range(low // PAGE, -(-end // PAGE)):
            if not self._here[page]:
                at = page * PAGE
                size = min(PAGE, len(self.region.data) - at)
                self.region.data[at : at + size] = np.frombuffer(self._stub.read(self._origin + at, size), np.uint8)
                self._here[page] = True

    def _wrote(self, low: int, end: int) -> None:
        self._changed[low // PAGE : -(-end // PAGE)] = True

    def give_back(self) -> None:
        for page in np.flatnonzero(self._changed):
            at = int(page) * PAGE
            self._stub.write(self._origin + at, self.region.data[at : at + PAGE].tobytes())
        self._changed[:] = False


class AttachedNpu:
    """The NPU of a QEMU that will be started with `options` and with `files` open."""

    def __init__(self, accelerator: Accelerator, place: NpuPlace, machine: str) -> None:
        ours, theirs = socket.socketpair()
        our_lines, their_lines = socket.socketpair()
        self._stub, self._lines = GdbClient(ours), our_lines
        self.files: Sequence[socket.socket] = (theirs, their_lines)
        self.options = (
            "-S",
            *("-chardev", f"socket,id=gdb,fd={theirs.fileno()}", "-gdb", "chardev:gdb"),
            *("-chardev", f"socket,id=qtest,fd={their_lines.fileno()}", "-qtest", "chardev:qtest"),
            *("-qtest-log", "none"),
        )
        self._place, self._machine = place, machine
        self._copies = [_Copy(self._stub, origin, size) for origin, size in place.banks]
        banks = [NpuBank(origin, copy.region) for (origin, _), copy in zip(place.banks, self._copies, strict=True)]
        self.device = NpuDevice(accelerator, banks)
        self._raised = False
        self._last = 0.0  # when it was last touched

    def fileno(self) -> int:
        return self._stub.fileno()

    def close(self) -> None:
        self._stub.close()
        self._lines.close()

    def start(self) -> None:
        """Let QEMU, which waits, run."""
        for file in self.files:
            file.close()
        self._stub.greet()
        self._stub.demand(f"Z4,{self._place.base:x},{SIZE:x}")
        self._stub.send("c")

    def patience(self) -> float | None:
        """Return the seconds until the core is assumed to sleep; None if that does not matter."""
        sleeps = self.device.busy and self._place.irq is not None
        return max(0.0, self._last + SILENCE - time.monotonic()) if sleeps else None

    def look(self) -> None:
        """Handle an access, or silence."""
        if (why := self._stub.poll()) is not None:
            self._handle_access(why)
        elif self.patience() is not None and time.monotonic() >= self._last + SILENCE:
            self._stub.interrupt()
            self._use_device(self.device.work)
            self._stub.send("c")
            self._last = time.monotonic()

    def _handle_access(self, why: str) -> None:
        if why[:1] in ("W", "X"):
            return
        if "watch:" not in why:
            raise DeviceFault("QEMU stopped for another reason than the NPU", have=why)
        stub = self._stub
        pc = stub.register(PC)
        what = decode_transfer(stub.read(pc, 4), stub.register)
        if what is None or what.size != 4 or not 0 <= what.address - self._place.base < SIZE or what.address % 4:
            code = stub.read(pc, 4).hex()
            raise DeviceFault(f"the image reaches the NPU otherwise than by a word, at {pc:#010x}", have=f"code {code}")
        offset = what.address - self._place.base
        if what.load:
            self._use_device(lambda: stub.set_register(what.register, self.device.read(offset)))
            if self.device.seen and self._place.irq is not None:
                self._use_device(self.device.work)
        else:
            value = stub.register(what.register)
            self._use_device(lambda: self.device.write(offset, value))
        if what.back is not None:
            stub.set_register(*what.back)
        stub.set_register(PC, pc + what.length)
        stub.send("c")
        self._last = time.monotonic()

    def _use_device(self, do: Callable[[], None]) -> None:
        """Use the device while the core is stopped, and copy the changed memory to QEMU."""
        for copy in self._copies:
            copy.forget()
        try:
            do()
        except Misuse as misuse:
            raise DeviceFault(f"the NPU is used wrongly: {misuse}") from None
        except NpuFault as fault:
            raise DeviceFault(f"the NPU: {fault}") from None
        for copy in self._copies:
            copy.give_back()
        self._drive_line()

    def _drive_line(self) -> None:
        if self.device.irq == self._raised or self._place.irq is None:
            return
        self._raised = self.device.irq
        first, path, name = next(line for line in LINES[self._machine] if line[0] <= self._place.irq)
        self._lines.sendall(f"set_irq_in {path} {name} {self._place.irq - first} {int(self._raised)}\n".encode())
        answer = self._lines.recv(256)
        if not answer.startswith(b"OK"):
            raise DeviceFault("QEMU has no such interrupt", have=answer.decode(errors="replace"))

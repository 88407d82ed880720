"""An emulated Ethos-U beside one of QEMU's machines, which have none: attached from outside, by two of its doors.

QEMU's gdb stub stops the core before each access to the NPU's page; what the access would do is done here, and the core
goes on behind it. The interrupt line is driven through QEMU's test interface. Nothing of the image knows of that.

QEMU fails if it is stopped from outside just when an access stops it. So an NPU with an interrupt does its work when
the core has looked and seen it run: the core may sleep next, and is woken. One without is looked at until it is done.
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
SILENCE = 0.5  # seconds without an access, after which the core is taken to sleep without having looked
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
    """A copy of a memory of QEMU's, fetched page by page on demand."""

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
    """The NPU beside a QEMU that is going to be started with `options`, and with `files` open."""

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
        """QEMU runs, and waits."""
        for file in self.files:
            file.close()
        self._stub.greet()
        self._stub.demand(f"Z4,{self._place.base:x},{SIZE:x}")
        self._stub.send("c")

    def patience(self) -> float | None:
        """Seconds until the core is taken to sleep; None if it does not matter."""
        sleeps = self.device.busy and self._place.irq is not None
        return max(0.0, self._last + SILENCE - time.monotonic()) if sleeps else None

    def look(self) -> None:
        """An access came, or silence."""
        if (why := self._stub.poll()) is not None:
            self._stopped(why)
        elif self.patience() is not None and time.monotonic() >= self._last + SILENCE:
            self._stub.interrupt()
            self._settle(self.device.work)
            self._stub.send("c")
            self._last = time.monotonic()

    def _stopped(self, why: str) -> None:
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
            self._settle(lambda: stub.set_register(what.register, self.device.read(offset)))
            if self.device.seen and self._place.irq is not None:
                self._settle(self.device.work)
        else:
            value = stub.register(what.register)
            self._settle(lambda: self.device.write(offset, value))
        if what.back is not None:
            stub.set_register(*what.back)
        stub.set_register(PC, pc + what.length)
        stub.send("c")
        self._last = time.monotonic()

    def _settle(self, do: Callable[[], None]) -> None:
        """Do something with the device while the core stands still, and show the core what came of it."""
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

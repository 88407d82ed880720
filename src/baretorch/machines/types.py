"""The interface of machines: a byte stream to the running image, exact counts, and how an emulator is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.targets.flash import Waits
from baretorch.targets.types import Board


class DeviceFault(CompileError):
    """The image stopped: a fault, an exit, an invalid jump. `addresses` are the place where it stopped, and return
    addresses that may be on its stack, the innermost first."""

    addresses: tuple[int, ...] = ()


class DeviceHang(CompileError):
    """The image did not respond within the time limit."""


@dataclass(frozen=True)
class Access:
    """An access of a core to a byte. `function` contains it, and `site` is that of a Block."""

    core: int
    writes: bool
    address: int
    function: str
    site: int

    def __str__(self) -> str:
        return f"core {self.core} {'writes' if self.writes else 'reads'} in {self.function}"


class CoresRace(DeviceFault):
    """Both cores touch a byte in the same phase, and one of them writes: their order is chance. The phase counts the
    meetings of the cores since the run function was called."""

    def __init__(self, phase: int, address: int, accesses: tuple[Access, Access]) -> None:
        super().__init__(
            f"both cores touch the byte at {address:#010x} between two meetings",
            have=[*map(str, accesses), f"phase {phase} of the run"],
            need="a meeting between the two, or bytes that only one core touches",
        )
        self.phase = phase
        self.address = address
        self.accesses = accesses  # of core 0 and of core 1

    def among(self, layers: Mapping[int, Sequence[str]]) -> CoresRace:
        """Return the same error with the layers that each core works on in this phase."""
        race = CoresRace(self.phase, self.address, self.accesses)
        race.have += tuple(f"core {core} works on {', '.join(names)}" for core, names in sorted(layers.items()))
        return race


@dataclass(frozen=True)
class Cores:
    """The cost of a call of the run function, from its entry on core 0 to its return.

    It has the instructions of each core, the time that each waited in meetings or asleep, and the total in instructions
    of the core that was last. For a cluster both times are cycles.
    """

    instructions: tuple[int, ...]
    critical_path: int
    waiting: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """A basic block, and how often a call of the run function executed it.

    `site` is 0 in the run function itself. In all functions that it calls, directly or not, it is the address after its
    call. `taken` counts how often another instruction followed than the next one in memory.
    """

    site: int
    address: int
    instructions: int
    executed: int
    taken: int


@dataclass(frozen=True)
class FlashReads:
    """A core's reads from flash in a call of the run function, past its caches, and the cycles that it waited for them.

    `site` is as in a Block. A copy that runs while the core computes takes `copied` cycles, from the call before that
    address; at `site` the core waits for the rest of it.
    """

    core: int
    site: int
    code_misses: int
    data_misses: int
    bytes: int
    waits: Waits
    copied: int = 0


@dataclass(frozen=True)
class CoreSpan:
    """The work of a core of a cluster on a visit to a site, as in a Block, between two cycles.

    The last six are cycles in which it waited: for a register that is being loaded, for a bank that served another
    core, for slower memory, at barriers, for registers of the DMA engine, and of other units.
    """

    core: int
    site: int
    begin: int
    end: int
    instructions: int
    load_use: int
    conflict: int
    slow: int
    barrier: int
    dma: int
    unit: int

    @property
    def busy(self) -> int:
        return self.end - self.begin - sum((self.load_use, self.conflict, self.slow, self.barrier, self.dma, self.unit))


BARRIER = "barrier"


@dataclass(frozen=True)
class Pause:
    """A core slept until `what` woke it: the BARRIER, or a unit that had finished."""

    core: int
    what: str
    begin: int
    end: int


@dataclass(frozen=True)
class UnitWork:
    """The work of a unit other than the cores: where and when it was requested, began and ended. `bytes` are written
    from `target` on, in one piece or in rows."""

    unit: str
    channel: int
    core: int
    site: int
    source: int
    target: int
    bytes: int
    asked: int
    begin: int
    end: int


@dataclass(frozen=True)
class ClusterTrace:
    """The events in a cluster during a call of the run function, between two cycles. `calls` are the names of the
    functions whose calls return to sites."""

    begin: int
    end: int
    spans: tuple[CoreSpan, ...]
    pauses: tuple[Pause, ...]
    works: tuple[UnitWork, ...]
    calls: Mapping[int, str]

    @property
    def cycles(self) -> int:
        return self.end - self.begin


class Machine(Protocol):
    """A running image, emulated or real. Closing it ends the emulation."""

    name: str  # "unicorn", "qemu", "fvp", "rp2040js", "cluster", "native", "serial"

    def write(self, data: bytes) -> None:
        """Send bytes to the image's UART."""

    def read(self, timeout: float) -> bytes:
        """Return the bytes that the image has sent since the last call, at least one. Raise DeviceHang after `timeout`
        seconds, and DeviceFault if the image stopped for good."""

    def instructions(self) -> tuple[int, ...]:
        """Return the instructions of each call of the run function so far, of two cores those on the critical path;
        empty if not counted."""

    def cycles(self) -> tuple[int, ...]:
        """Return the clock cycles of each call of the run function, by a table of the emulator; empty if it has
        none."""

    def cores(self) -> Cores | None:
        """Return what each core did in the last call of the run function; None for one core, or if it is not known."""

    def blocks(self) -> tuple[Block, ...]:
        """Return what the last call of the run function executed, in the order of its visits to sites; empty if not
        known."""

    def flash_reads(self) -> tuple[FlashReads, ...] | None:
        """Return the reads from flash in the last call of the run function; None if they cost nothing or are not
        known."""

    def trace(self) -> ClusterTrace | None:
        """Return the events in the last call of the run function; None except for clusters."""

    def close(self) -> None: ...


class UncountedMachine:
    """The figures of a machine that counts nothing. Others replace what they count."""

    def instructions(self) -> tuple[int, ...]:
        return ()

    def cycles(self) -> tuple[int, ...]:
        return ()

    def cores(self) -> Cores | None:
        return None

    def blocks(self) -> tuple[Block, ...]:
        return ()

    def flash_reads(self) -> tuple[FlashReads, ...] | None:
        return None

    def trace(self) -> ClusterTrace | None:
        return None


@dataclass(frozen=True)
class GdbServer:
    """The argument of gdb's `target remote`, the commands that gdb runs after it, and the machine that takes the
    model's inputs."""

    target: str
    begin: tuple[str, ...]
    machine: Machine
    close: Callable[[], object]  # ends the emulation
    start: Callable[[], None] = lambda: None  # in the thread that communicates with the image, before the first frame
    end: Callable[[], None] = lambda: None  # in the same thread, when the image has stopped for good


@dataclass(frozen=True)
class Tool:
    """A tool that Baretorch can use. `find` returns the installed version; packages and programs need no `find`.
    Without a `needed` tool, `baretorch run` of a .pte is not possible on a computer with Baretorch alone."""

    name: str
    kind: str  # "package", "program", "library" with its headers, or "npm": a package of Node.js
    purpose: str
    get: str
    needed: bool = False
    find: Callable[[], str | None] | None = None


@dataclass(frozen=True)
class Driver:
    """The start of an emulator: `DRIVER` of the module that has the emulator's name. Large libraries are imported when
    it is used.

    `start` boots an image whose run function has that symbol; its last argument requests the time of flash reads, if
    the emulator can simulate it. `need` raises CompileError with the remedy if the emulator is not installed. `debug`
    boots it with gdb's server at a socket. `usb` means that it has a USB cable.
    """

    start: Callable[[Image, str, bool], Machine]
    need: Callable[[Board], object] = lambda board: None
    debug: Callable[[Image, str, Path], AbstractContextManager[GdbServer]] | None = None
    usb: bool = False
    tools: tuple[Tool, ...] = ()

    def is_installed(self, board: Board) -> bool:
        """Report whether the emulator can run on this computer."""
        try:
            self.need(board)
        except CompileError:
            return False
        return True

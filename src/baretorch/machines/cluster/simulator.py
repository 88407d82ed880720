"""A running cluster: the C of this folder, with nothing of images or boards."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

from baretorch.machines.cluster.library import CHANNELS, HERE, SOURCES, ConfigStruct, EventStruct, load_library
from baretorch.machines.hooks import shared_library
from baretorch.machines.types import BARRIER, CoreSpan, Pause, UnitWork

OUTPUT_ROOM = 1 << 16
DMA, GEMM = "dma0", "gemm0"  # as the plan calls them
_WHAT = {CHANNELS: GEMM, CHANNELS + 1: BARRIER}


class ClusterStop(IntEnum):
    """The reason why the simulator stopped: the result of bt_cluster_run."""

    HAS_OUTPUT = 0
    WANTS_INPUT = 1
    TIME = 2
    FAULT = 3


class ClusterFault(IntEnum):
    """enum bt_fault."""

    NONE = 0
    ILLEGAL = 1
    NO_CODE = 2
    NO_MEMORY = 3
    STOPPED = 4
    LOOP_RULE = 5
    RACE = 6
    IN_TRANSFER = 7
    UNIT_RULE = 8
    DEADLOCK = 9


@dataclass(frozen=True)
class FaultReport:
    """A fault that stopped a core for good; `other` is the core that touched the byte before, or the channel of a
    transfer."""

    fault: ClusterFault
    core: int
    other: int
    address: int
    pc: int
    site: int
    other_site: int
    writes: bool
    other_writes: bool


@dataclass(frozen=True)
class Event:
    """A core's request for bytes (a bit each) of a word; `answer` is how many cycles later it is granted, or negative:
    not yet."""

    cycle: int
    core: int
    address: int
    bytes: int
    write: bool
    data: int
    answer: int


class Simulator:
    """A cluster of that configuration; its memory is empty."""

    def __init__(self, config: ConfigStruct) -> None:
        self.library = _library()
        self.handle = self.library.bt_cluster_new(config)
        if not self.handle:
            raise MemoryError("no memory for the cluster")

    def close(self) -> None:
        if self.handle:
            self.library.bt_cluster_free(self.handle)
        self.handle = None

    def load(self, address: int, data: bytes) -> bool:
        """Whether there is memory for it."""
        return bool(self.library.bt_cluster_load(self.handle, address, data, len(data)))

    def peek(self, address: int, size: int) -> bytes:
        room = (ctypes.c_uint8 * size)()
        if not self.library.bt_cluster_peek(self.handle, address, room, size):
            raise ValueError(f"no memory at {address:#x}")
        return bytes(room)

    def write(self, data: bytes) -> None:
        if not self.library.bt_cluster_input(self.handle, data, len(data)):
            raise MemoryError("no memory for the console's input")

    def output(self) -> bytes:
        room = (ctypes.c_uint8 * OUTPUT_ROOM)()
        return bytes(room[: self.library.bt_cluster_output(self.handle, room, OUTPUT_ROOM)])

    def run(self, cycles: int) -> ClusterStop:
        return ClusterStop(self.library.bt_cluster_run(self.handle, cycles))

    def trace(self, room: int, registers: bool = False) -> None:
        """Keep so many requests, the first, if there are more; all, or those to registers."""
        if not self.library.bt_cluster_trace(self.handle, room, registers):
            raise MemoryError("no memory for the trace")

    def events(self) -> list[Event]:
        return [
            Event(e.cycle, e.core, e.address, e.bytes, bool(e.write), e.data & _lanes(e), e.answer)
            for e in self._rows("bt_cluster_events")
        ]

    def spans(self) -> tuple[CoreSpan, ...]:
        """Return the spans of the last call of the run function, in the order in which visits ended."""
        names = CoreSpan.__dataclass_fields__
        return tuple(CoreSpan(**{name: getattr(s, name) for name in names}) for s in self._rows("bt_cluster_spans"))

    def pauses(self) -> tuple[Pause, ...]:
        return tuple(Pause(p.core, _WHAT.get(p.channel, DMA), p.begin, p.end) for p in self._rows("bt_cluster_pauses"))

    def works(self) -> tuple[UnitWork, ...]:
        names = [name for name in UnitWork.__dataclass_fields__ if name != "unit"]
        found = self._rows("bt_cluster_works")
        return tuple(UnitWork(_WHAT.get(w.channel, DMA), **{name: getattr(w, name) for name in names}) for w in found)

    def calls(self, cycles: bool) -> tuple[int, ...]:
        """Cycles or instructions of core 0 in each call of the run function."""
        return tuple(self._rows("bt_cluster_calls", cycles))

    def report(self) -> FaultReport:
        r = self.library.bt_cluster_report(self.handle).contents
        places = (r.core, r.other, r.address, r.pc, r.site, r.other_site)
        return FaultReport(ClusterFault(r.fault), *places, bool(r.writes), bool(r.other_writes))

    def _rows(self, function: str, *arguments: object) -> list[Any]:
        count = ctypes.c_uint64()
        rows = getattr(self.library, function)(self.handle, *arguments, ctypes.byref(count))
        return list(rows[: count.value]) if count.value else []


def _lanes(event: EventStruct) -> int:
    return sum(0xFF << 8 * i for i in range(4) if event.bytes >> i & 1)


@cache
def _library() -> ctypes.CDLL:
    return load_library(shared_library(*SOURCES, folder=HERE))

"""Records what the cores of a simulator request, and reads its memory."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

from baretorch.machines.cluster.simulator import CLUSTER_STRUCTS, Simulator


@dataclass(frozen=True)
class Event:
    """A core's request for bytes (a bit each) of a word. `answer` is the number of cycles until it is granted; negative
    values mean not yet."""

    cycle: int
    core: int
    address: int
    bytes: int
    write: bool
    data: int
    answer: int


def trace(simulator: Simulator, room: int, registers: bool = False) -> None:
    """Record the first `room` requests: all, or only those to registers."""
    function = simulator.library.bt_cluster_trace
    function.restype, function.argtypes = c_bool, (c_void_p, c_uint64, c_bool)
    assert function(simulator.handle, room, registers), "no memory for the trace"


def events(simulator: Simulator) -> list[Event]:
    """Return the recorded requests."""
    function, count = simulator.library.bt_cluster_events, c_uint64()
    function.restype, function.argtypes = POINTER(CLUSTER_STRUCTS["bt_event"]), (c_void_p, POINTER(c_uint64))
    rows = function(simulator.handle, ctypes.byref(count))
    return [
        Event(e.cycle, e.core, e.address, e.bytes, bool(e.write), e.data & _lanes(e), e.answer)
        for e in (rows[: count.value] if count.value else ())
    ]


def peek(simulator: Simulator, address: int, size: int) -> bytes:
    """Return the content of memory."""
    function, room = simulator.library.bt_cluster_peek, (c_uint8 * size)()
    function.restype, function.argtypes = c_bool, (c_void_p, c_uint32, POINTER(c_uint8), c_uint32)
    assert function(simulator.handle, address, room, size), f"no memory at {address:#x}"
    return bytes(room)


def _lanes(event: ctypes.Structure) -> int:
    return sum(0xFF << 8 * i for i in range(4) if event.bytes >> i & 1)

"""A running cluster: the C of this folder, without images and boards."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_bool, c_char_p, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from baretorch.machines.hooks import shared_library
from baretorch.machines.hooks.structs import read_header
from baretorch.machines.types import BARRIER, CoreSpan, Pause, UnitWork
from baretorch.units import KINDS

SOURCES = ("core.c", "decode.c", "memory.c", "xcv.c", *(f"{kind}.c" for kind in KINDS))
HERE = Path(__file__).parent
HEADER = read_header(HERE / "cluster.h")
CLUSTER_STRUCTS = HEADER.structs
OUTPUT_ROOM = 1 << 16
DMA = "dma0"  # the plan's name
_CHANNELS, _AT_BARRIER = (HEADER.constants[name] for name in ("BT_CHANNELS", "BT_AT_BARRIER"))


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
    """A fault that stopped a core for good. `other` is the core that touched the byte before, or the channel of a
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


class Simulator:
    """A running cluster. Its memory is empty at first. `units` are the names of its accelerator units."""

    def __init__(self, config: ctypes.Structure, units: Sequence[str] = ()) -> None:
        self.library = load_library()
        self._causes = {**dict(enumerate(units, _CHANNELS)), _AT_BARRIER: BARRIER}
        self.handle = self.library.bt_cluster_new(config)
        if not self.handle:
            raise MemoryError("no memory for the cluster")

    def close(self) -> None:
        if self.handle:
            self.library.bt_cluster_free(self.handle)
        self.handle = None

    def load(self, address: int, data: bytes) -> bool:
        """Copy data to memory; return False if there is no memory for it."""
        return bool(self.library.bt_cluster_load(self.handle, address, data, len(data)))

    def write(self, data: bytes) -> None:
        if not self.library.bt_cluster_input(self.handle, data, len(data)):
            raise MemoryError("no memory for the console's input")

    def output(self) -> bytes:
        room = (ctypes.c_uint8 * OUTPUT_ROOM)()
        return bytes(room[: self.library.bt_cluster_output(self.handle, room, OUTPUT_ROOM)])

    def run(self, cycles: int) -> ClusterStop:
        return ClusterStop(self.library.bt_cluster_run(self.handle, cycles))

    def spans(self) -> tuple[CoreSpan, ...]:
        """Return the spans of the last call of the run function, in the order in which visits ended."""
        return tuple(CoreSpan(*_flatten(span)) for span in self._rows("bt_cluster_spans"))

    def pauses(self) -> tuple[Pause, ...]:
        return tuple(
            Pause(p.core, self._causes.get(p.channel, DMA), p.begin, p.end) for p in self._rows("bt_cluster_pauses")
        )

    def works(self) -> tuple[UnitWork, ...]:
        return tuple(UnitWork(self._causes.get(w.channel, DMA), *_flatten(w)) for w in self._rows("bt_cluster_works"))

    def calls(self, cycles: bool) -> tuple[int, ...]:
        """Return the cycles or instructions of core 0 in each call of the run function."""
        return tuple(self._rows("bt_cluster_calls", cycles))

    def report(self) -> FaultReport:
        r = self.library.bt_cluster_report(self.handle).contents
        places = (r.core, r.other, r.address, r.pc, r.site, r.other_site)
        return FaultReport(ClusterFault(r.fault), *places, bool(r.writes), bool(r.other_writes))

    def _rows(self, function: str, *arguments: object) -> list[Any]:
        count = ctypes.c_uint64()
        rows = getattr(self.library, function)(self.handle, *arguments, ctypes.byref(count))
        return list(rows[: count.value]) if count.value else []


def _flatten(struct: ctypes.Structure) -> Iterator[int]:
    """Yield the numbers of a structure, and of those that it contains."""
    for name, *_ in struct._fields_:
        value = getattr(struct, name)
        yield from _flatten(value) if isinstance(value, ctypes.Structure) else (value,)


def add_unit(config: ctypes.Structure, kind: str, base: int, sizes: Sequence[int]) -> None:
    """Add an accelerator unit, whose registers are at `base` and which KIND.c simulates."""
    simulation = CLUSTER_STRUCTS["bt_unit_kind"].in_dll(load_library(), f"bt_unit_{kind}")
    unit = config.unit[config.units]
    unit.base, unit.kind = base, ctypes.pointer(simulation)
    unit.sizes[: len(sizes)] = sizes
    config.units += 1


@cache
def load_library() -> ctypes.CDLL:
    """Return the simulator, which is compiled on first use, with the types of its functions."""
    library = ctypes.CDLL(str(shared_library(*SOURCES, folder=HERE)))
    bytes_in, count = c_char_p, POINTER(c_uint64)
    rows: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("bt_cluster_new", c_void_p, (POINTER(CLUSTER_STRUCTS["bt_config"]),)),
        ("bt_cluster_free", None, (c_void_p,)),
        ("bt_cluster_load", c_bool, (c_void_p, c_uint32, bytes_in, c_uint32)),
        ("bt_cluster_input", c_bool, (c_void_p, bytes_in, c_uint64)),
        ("bt_cluster_output", c_uint32, (c_void_p, POINTER(c_uint8), c_uint32)),
        ("bt_cluster_report", POINTER(CLUSTER_STRUCTS["bt_report"]), (c_void_p,)),
        ("bt_cluster_spans", POINTER(CLUSTER_STRUCTS["bt_span"]), (c_void_p, count)),
        ("bt_cluster_pauses", POINTER(CLUSTER_STRUCTS["bt_pause"]), (c_void_p, count)),
        ("bt_cluster_works", POINTER(CLUSTER_STRUCTS["bt_work"]), (c_void_p, count)),
        ("bt_cluster_calls", count, (c_void_p, c_bool, count)),
        ("bt_cluster_run", c_int, (c_void_p, c_uint64)),
    )
    for name, result, arguments in rows:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library

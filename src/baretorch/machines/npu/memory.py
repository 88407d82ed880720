"""The memory of an NPU: regions, some of them constant, and which bytes were ever written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import BlockShape, Int64s, Surface

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
Stored: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

INTERNAL = 8  # the number of the memory inside the NPU, after those of the regions


@dataclass
class NpuRegion:
    """A part of memory. `data` may be a copy of memory elsewhere: then `fetch` is called with the range of bytes that
    will be read, and `wrote` with the range that was changed."""

    data: Bytes
    known: Flags | None = None  # the bytes that were ever written; None: all
    constant: bool = False
    space: int = 0  # regions of one space are parts of the same memory,
    base: int = 0  # and begin there
    fetch: Callable[[int, int], None] | None = None
    wrote: Callable[[int, int], None] | None = None


@dataclass(frozen=True)
class NpuAccess:
    """The bytes of a space that an operation reads or writes."""

    space: int
    addresses: Int64s
    low: int
    end: int

    def meets(self, other: NpuAccess) -> bool:
        if self.space != other.space or self.end <= other.low or other.end <= self.low:
            return False
        low, end = max(self.low, other.low), min(self.end, other.end)
        marks = np.zeros(end - low, np.bool_)
        marks[self.addresses[(self.addresses >= low) & (self.addresses < end)] - low] = True
        return bool(marks[other.addresses[(other.addresses >= low) & (other.addresses < end)] - low].any())


def access(region: NpuRegion, addresses: Int64s) -> NpuAccess:
    there = addresses + region.base
    return NpuAccess(region.space, there, int(there.min()), int(there.max()) + 1)


@dataclass
class Touched:
    """The bytes that an operation has read and written."""

    reads: list[NpuAccess] = field(default_factory=list)
    writes: list[NpuAccess] = field(default_factory=list)
    made: Int64s | None = None  # the feature map that it wrote, as it is in memory


class NpuMemory:
    """The regions of an NPU by number."""

    def __init__(self, regions: dict[int, NpuRegion]) -> None:
        self._regions = regions
        self.touched = Touched()

    def begin(self) -> None:
        """Begin the next operation."""
        self.touched = Touched()

    def read(self, surface: Surface, shape: BlockShape) -> Int64s:
        """Read the elements of a feature map."""
        surface.check(shape)
        addresses = surface.addresses(shape)
        size = surface.element.size
        region = self._reach(surface.region, addresses, size, surface.name)
        spread = addresses[..., None] + np.arange(size) if size > 1 else addresses[..., None]
        self._check_known(region, spread, surface.name)
        self.touched.reads.append(access(region, spread))
        raw = region.data[spread]
        return raw.view(surface.element.dtype)[..., 0].astype(np.int64)

    def write(self, surface: Surface, values: Int64s) -> None:
        """Write all elements of a feature map."""
        height, width, depth = values.shape
        surface.check((height, width, depth))
        addresses = surface.addresses((height, width, depth))
        size = surface.element.size
        region = self._reach(surface.region, addresses, size, surface.name)
        if region.constant:
            raise NpuFault(FaultKind.BUS, f"{surface.name} is in region {surface.region}, which cannot be written")
        spread = addresses[..., None] + np.arange(size) if size > 1 else addresses[..., None]
        marks = np.zeros(int(addresses.max()) - int(addresses.min()) + size, np.bool_)
        marks[spread - addresses.min()] = True
        if np.count_nonzero(marks) != spread.size:
            raise NpuFault(FaultKind.STRICT, f"{surface.name} has elements that share a byte")
        self._store(region, spread, values.astype(surface.element.dtype)[..., None].view(np.uint8))
        self.touched.made = values

    def read_bytes(self, number: int, address: int, length: int, name: str) -> bytes:
        region = self._range(number, address, length, name)
        self._check_known(region, np.arange(address, address + length), name)
        self.touched.reads.append(access(region, np.arange(address, address + length)))
        return region.data[address : address + length].tobytes()

    def write_bytes(self, number: int, address: int, data: bytes, name: str) -> None:
        region = self._range(number, address, len(data), name)
        if region.constant:
            raise NpuFault(FaultKind.BUS, f"{name} is in region {number}, which cannot be written")
        self._store(region, np.arange(address, address + len(data)), np.frombuffer(data, np.uint8))

    def copy(self, out_of: int, begin: int, into: int, end: int, length: int, name: str) -> None:
        """Copy bytes. Bytes that were never written may be copied; only an operation that reads them is at fault."""
        source, target = self._range(out_of, begin, length, name), self._range(into, end, length, name)
        if target.constant:
            raise NpuFault(FaultKind.BUS, f"{name} writes to region {into}, which is constant")
        given = np.arange(begin, begin + length)
        known = True if source.known is None else source.known[given]
        self._store(target, np.arange(end, end + length), source.data[given], known)
        self.touched.reads.append(access(source, given))

    def _store(self, region: NpuRegion, addresses: Int64s, data: Stored, known: Flags | bool = True) -> None:
        """Write bytes; `known` is whether they were ever written at their source."""
        region.data[addresses] = data
        if region.known is not None:
            region.known[addresses] = known
        if region.wrote is not None:
            region.wrote(int(addresses.min()), int(addresses.max()) + 1)
        self.touched.writes.append(access(region, addresses))

    def forget(self, number: int, address: int, length: int) -> None:
        """Make the contents invalid."""
        region = self._range(number, address, length, "an invalid part")
        if region.known is not None:
            region.known[address : address + length] = False

    def _range(self, number: int, address: int, length: int, name: str) -> NpuRegion:
        if length < 1:
            raise NpuFault(FaultKind.PARSE, f"{name} has {length} bytes")
        return self._reach(number, np.array([address, address + length - 1]), 1, name)

    def _reach(self, number: int, addresses: Int64s, size: int, name: str) -> NpuRegion:
        if number not in self._regions:
            raise NpuFault(FaultKind.BUS, f"{name} is in region {number}, which does not exist")
        region = self._regions[number]
        low, high = int(addresses.min()), int(addresses.max()) + size
        if low < 0 or high > len(region.data):
            raise NpuFault(
                FaultKind.BUS,
                f"{name} reaches from {low:#x} to {high:#x} in region {number}, which has {len(region.data):#x} bytes",
            )
        if region.fetch is not None:
            region.fetch(low, high)
        return region

    def _check_known(self, region: NpuRegion, addresses: Int64s, name: str) -> None:
        if region.known is None:
            return
        known = region.known[addresses]
        if not known.all():
            first = int(addresses.reshape(-1)[int(np.argmin(known.reshape(-1)))])
            raise NpuFault(FaultKind.STRICT, f"{name} reads byte {first:#x}, which was never written")

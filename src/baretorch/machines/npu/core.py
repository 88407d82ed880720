"""The parts of operations that all families share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from baretorch.machines.npu.arithmetic import source_size, upscale
from baretorch.machines.npu.commands import Set
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import INTERNAL, NpuMemory
from baretorch.machines.npu.registers import BlockShape, FeatureMap, Int64s, Registers, Window, surface, zero_point
from baretorch.npu.accelerators import Accelerator

SCALE_BYTES = 10  # of a channel's bias, factor and shift


@dataclass
class NpuCore:
    """The state of an NPU between operations."""

    accelerator: Accelerator
    memory: NpuMemory
    registers: Registers = field(default_factory=Registers)
    chained: dict[int, Int64s] = field(
        default_factory=dict
    )  # U85: buffers that hand one operation's output to the next
    sums: Int64s | None = None  # U85: accumulators with which the next operation continues


def read_window(core: NpuCore, names: FeatureMap, w: Window, out: BlockShape, depth: int) -> Int64s:
    """Read the part of an input that an output is computed from, and subtract its zero point."""
    rows, columns = w.needs(out[0], out[1])
    mode = core.registers[Set.IFM_UPSCALE]
    where = surface(core.registers, names)
    small = source_size(mode, rows, columns)
    x = core.memory.read(where, (*small, depth)) - zero_point(core.registers, names, where.element)
    return upscale(x, mode, rows, columns)


def read_stream(core: NpuCore, region: Set, base: Set, length: Set, name: str) -> bytes:
    """Read compressed weights, or scales."""
    r = core.registers
    count = r.second(length)
    if count == 0:
        return b""
    at = r.address(base)
    if at % 16 or (count % 16 and "weights" in name):
        raise NpuFault(FaultKind.BUS, f"{name} at {at:#x}, of {count} bytes, are not aligned")
    return core.memory.read_bytes(r[region], at, count, name)


def read_lookup_table(core: NpuCore, address: int, kind: str, count: int) -> Int64s:
    """Read a lookup table from internal memory."""
    size = np.dtype(kind).itemsize * count
    data = core.memory.read_bytes(INTERNAL, address, size, "a lookup table")
    return np.frombuffer(data, kind).astype(np.int64)


def interpolate(pairs: Int64s, values: Int64s) -> Int64s:
    """Interpolate 16-bit numbers with 7 fractional bits in a table of 512 pairs of base and slope."""
    base, slope = pairs[0::2], pairs[1::2]
    entry = (values + 32768) >> 7
    found: Int64s = (base[entry] << 7) + slope[entry] * (values & 127)
    return found


def leading_zeros(values: Int64s) -> Int64s:
    """Count the leading zeros of 32-bit numbers."""
    low = values & 0xFFFFFFFF
    _, bits = np.frexp(low.astype(np.float64))
    return 32 - bits.astype(np.int64)

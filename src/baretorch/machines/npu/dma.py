"""DMA: copy from region to region, and tables into the NPU; on a U85 also lines, by a list of their numbers."""

from __future__ import annotations

import struct

from baretorch.machines.npu.commands import Set
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import INTERNAL
from baretorch.npu.accelerators import Family

ALIGNED = 16
MOST_LINES = 1 << 20


def run(core: NpuCore) -> None:
    """Run one DMA transfer."""
    r = core.registers
    source, target = r[Set.DMA0_SRC_REGION], r[Set.DMA0_DST_REGION]
    length = r.address(Set.DMA0_LEN)
    into = INTERNAL if target >> 8 & 1 else target & 7
    out_of = INTERNAL if source >> 8 & 1 else source & 7
    begin, end = r.address(Set.DMA0_SRC), r.address(Set.DMA0_DST)
    if into == INTERNAL and (length % ALIGNED or end % ALIGNED):
        raise NpuFault(FaultKind.BUS, f"DMA of {length} bytes to {end:#x} inside the NPU is not aligned")
    if source >> 9 == 0 and target >> 9 == 0:
        core.memory.copy(out_of, begin, into, end, length, "DMA")
        return
    if core.accelerator.family is not Family.U85:
        raise NpuFault(FaultKind.MODEL, "DMA with strides, which Baretorch never uses on a U55 or U65")
    for first, second in _lines(core, source, target):
        core.memory.copy(out_of, begin + first, into, end + second, length, "DMA")


def _lines(core: NpuCore, source: int, target: int) -> list[tuple[int, int]]:
    """Return the starts of lines in the source and in the target."""
    r = core.registers
    dims = (source >> 9 & 3) + 1
    if dims > 3:
        raise NpuFault(FaultKind.PARSE, "DMA of four dimensions")
    size0 = r[Set.DMA0_SIZE0] if dims > 1 else 1
    size1 = r[Set.DMA0_SIZE1] if dims > 2 else 1
    by_source, by_target = bool(source >> 11 & 1), bool(target >> 11 & 1)
    if size0 * size1 > MOST_LINES or (by_source and by_target):
        raise NpuFault(FaultKind.MODEL, f"DMA of {size0} times {size1} lines")
    step_in = r.stride(Set.DMA0_SRC_STRIDE0) if dims > 1 or by_source else 0
    step_out = r.stride(Set.DMA0_DST_STRIDE0) if dims > 1 or by_target else 0
    leap_in = r.stride(Set.DMA0_SRC_STRIDE1) if dims > 2 else 0
    leap_out = r.stride(Set.DMA0_DST_STRIDE1) if dims > 2 else 0
    made = []
    for j in range(size1):
        numbers = _numbers(core, j, size0, dims) if by_source or by_target else list(range(size0))
        for i, number in enumerate(numbers):
            made.append(
                (
                    j * leap_in + (number if by_source else i) * step_in,
                    j * leap_out + (number if by_target else i) * step_out,
                )
            )
    return made


def _numbers(core: NpuCore, row: int, count: int, dims: int) -> list[int]:
    r = core.registers
    skip = r.stride(Set.DMA0_IDX_SKIP1) if dims > 2 else 0
    begin = r.address(Set.DMA0_IDX) + row * (4 * count + skip)
    data = core.memory.read_bytes(r[Set.DMA0_IDX_REGION], begin, 4 * count, "the list of a DMA")
    numbers = list(struct.unpack(f"<{count}i", data))
    most = r.second(Set.DMA0_IDX_MAX)
    for number in numbers:
        if not 0 <= number <= most:
            raise NpuFault(FaultKind.BUS, f"the list of a DMA has {number}, and the largest may be {most}")
    return numbers

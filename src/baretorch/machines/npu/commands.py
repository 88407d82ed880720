"""The commands of Ethos-U: their names, their numbers, and the bits that they may set.

A command is a word of 32 bits: its number in bits 0 to 9, whether a second word follows in bit 14, a parameter in bits
16 to 31. `Command.carries` holds both in a number of 48 bits: the parameter, and the second word above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.npu.accelerators import Family

WIDE = 0x4000  # a second word follows
ADDRESS = 0xFFFFFFFF00FF  # of 40 bits
LENGTH = 0xFFFFFFFF0000
SHORT = 0xFFFF
ABSENT = -1

# The value of each command is its number, and the bits that it may carry on U55 and U65, and on U85.


class Do(Enum):
    """Commands that start an operation."""

    STOP = 0x000, SHORT, SHORT
    IRQ = 0x001, SHORT, SHORT
    CONV = 0x002, 0, 1
    DEPTHWISE = 0x003, 0, 0
    POOL = 0x005, 7, 7
    ELEMENTWISE = 0x006, 0x3F, 0x3F
    RESIZE = 0x007, ABSENT, 3
    DMA_START = 0x010, 0, 0
    DMA_WAIT = 0x011, 1, 3
    KERNEL_WAIT = 0x012, 3, 1
    PMU_MASK = 0x013, 1, 1
    BRANCH = WIDE | 0x100, ABSENT, 0xFFFFFFFF0001


class Set(Enum):
    """Commands that set a register of the command stream; registers keep their values."""

    IFM_PAD_TOP = 0x100, 0x7F, 0x7F
    IFM_PAD_LEFT = 0x101, 0x7F, 0x7F
    IFM_PAD_RIGHT = 0x102, 0xFF, 0xFF
    IFM_PAD_BOTTOM = 0x103, 0xFF, 0xFF
    IFM_DEPTH_M1 = 0x104, SHORT, SHORT
    IFM_PRECISION = 0x105, 0xC3CD, 0xC0CD
    IFM_UPSCALE = 0x107, 3, 3
    IFM_BROADCAST = 0x108, ABSENT, 0xF
    IFM_ZERO_POINT = 0x109, SHORT, SHORT
    IFM_WIDTH0_M1 = 0x10A, SHORT, SHORT
    IFM_HEIGHT0_M1 = 0x10B, SHORT, SHORT
    IFM_HEIGHT1_M1 = 0x10C, SHORT, SHORT
    IFM_IB_END = 0x10D, 0x3F, ABSENT
    IFM_REGION = 0x10F, 7, 7
    OFM_WIDTH_M1 = 0x111, SHORT, SHORT
    OFM_HEIGHT_M1 = 0x112, SHORT, SHORT
    OFM_DEPTH_M1 = 0x113, SHORT, SHORT
    OFM_PRECISION = 0x114, 0xC1C7, 0xFFC7
    OFM_BLK_WIDTH_M1 = 0x115, 0x3F, 0x7F
    OFM_BLK_HEIGHT_M1 = 0x116, 0x1F, 0x7F
    OFM_BLK_DEPTH_M1 = 0x117, 0x7F, 0x3FF
    OFM_ZERO_POINT = 0x118, SHORT, SHORT
    OFM_WIDTH0_M1 = 0x11A, SHORT, SHORT
    OFM_HEIGHT0_M1 = 0x11B, SHORT, SHORT
    OFM_HEIGHT1_M1 = 0x11C, SHORT, SHORT
    OFM_REGION = 0x11F, 7, 7
    KERNEL_WIDTH_M1 = 0x120, SHORT, SHORT
    KERNEL_HEIGHT_M1 = 0x121, SHORT, SHORT
    KERNEL_STRIDE = 0x122, 0x27F, 0x27F
    PARALLEL_MODE = 0x123, 1, ABSENT
    ACC_FORMAT = 0x124, 3, 0x773
    ACTIVATION = 0x125, 0x701F, 0x10FF
    ACTIVATION_MIN = 0x126, SHORT, SHORT
    ACTIVATION_MAX = 0x127, SHORT, SHORT
    WEIGHT_REGION = 0x128, 7, 7
    SCALE_REGION = 0x129, 7, 7
    RESIZE_X_SCALE_N_M1 = 0x12A, ABSENT, 0x7FF
    RESIZE_Y_SCALE_N_M1 = 0x12B, ABSENT, 0x7FF
    RESIZE_X_OFFSET = 0x12C, ABSENT, 0xFFF
    AB_START = 0x12D, 0x3F, ABSENT
    RESIZE_Y_OFFSET = 0x12D, ABSENT, 0xFFF
    WEIGHT_FORMAT = 0x12E, ABSENT, 0x11
    BLOCKDEP = 0x12F, 3, 7
    DMA0_SRC_REGION = 0x130, 0x707, 0xF07
    DMA0_DST_REGION = 0x131, 0x707, 0x907
    DMA0_SIZE0 = 0x132, SHORT, SHORT
    DMA0_SIZE1 = 0x133, SHORT, SHORT
    DMA0_IDX_REGION = 0x134, ABSENT, 7
    IFM2_BROADCAST = 0x180, 0xC7, 0xF
    IFM2_SCALAR = 0x181, SHORT, ABSENT
    IFM2_PRECISION = 0x185, 0xCD, 0xC0CD
    IFM2_ZERO_POINT = 0x189, SHORT, SHORT
    IFM2_WIDTH0_M1 = 0x18A, SHORT, SHORT
    IFM2_HEIGHT0_M1 = 0x18B, SHORT, SHORT
    IFM2_HEIGHT1_M1 = 0x18C, SHORT, SHORT
    IFM2_IB_START = 0x18D, 0x3F, ABSENT
    IFM2_REGION = 0x18F, 7, 7
    IFM_BASE0 = WIDE | 0x00, ADDRESS, ADDRESS
    IFM_BASE1 = WIDE | 0x01, ADDRESS, ADDRESS
    IFM_BASE2 = WIDE | 0x02, ADDRESS, ADDRESS
    IFM_BASE3 = WIDE | 0x03, ADDRESS, ADDRESS
    IFM_STRIDE_X = WIDE | 0x04, ADDRESS, ADDRESS
    IFM_STRIDE_Y = WIDE | 0x05, ADDRESS, ADDRESS
    IFM_STRIDE_C = WIDE | 0x06, ADDRESS, ADDRESS
    OFM_BASE0 = WIDE | 0x10, ADDRESS, ADDRESS
    OFM_BASE1 = WIDE | 0x11, ADDRESS, ADDRESS
    OFM_BASE2 = WIDE | 0x12, ADDRESS, ADDRESS
    OFM_BASE3 = WIDE | 0x13, ADDRESS, ADDRESS
    OFM_STRIDE_X = WIDE | 0x14, ADDRESS, ADDRESS
    OFM_STRIDE_Y = WIDE | 0x15, ADDRESS, ADDRESS
    OFM_STRIDE_C = WIDE | 0x16, ADDRESS, ADDRESS
    WEIGHT_BASE = WIDE | 0x20, ADDRESS, ADDRESS
    WEIGHT_LENGTH = WIDE | 0x21, LENGTH, LENGTH
    SCALE_BASE = WIDE | 0x22, ADDRESS, ADDRESS
    SCALE_LENGTH = WIDE | 0x23, 0xFFFFF0000, 0xFFFFF0000
    OFM_SCALE = WIDE | 0x24, 0xFFFFFFFF003F, 0x7FFFFFFFE7FF
    OPA_SCALE = WIDE | 0x25, 0xFFFFFFFF003F, ABSENT
    IFM_SCALE = WIDE | 0x25, ABSENT, 0x7FFFFFFF27FF
    OPB_SCALE = WIDE | 0x26, 0xFFFF0000, ABSENT
    IFM2_SCALE = WIDE | 0x26, ABSENT, 0x7FFFFFFF27FF
    OP_SCALAR = WIDE | 0x27, ABSENT, LENGTH
    DMA0_SRC = WIDE | 0x30, ADDRESS, ADDRESS
    DMA0_DST = WIDE | 0x31, ADDRESS, ADDRESS
    DMA0_LEN = WIDE | 0x32, ADDRESS, ADDRESS
    DMA0_SKIP0 = WIDE | 0x33, ADDRESS, ABSENT
    DMA0_SRC_STRIDE0 = WIDE | 0x33, ABSENT, ADDRESS
    DMA0_SKIP1 = WIDE | 0x34, ADDRESS, ABSENT
    DMA0_SRC_STRIDE1 = WIDE | 0x34, ABSENT, ADDRESS
    DMA0_DST_STRIDE0 = WIDE | 0x35, ABSENT, ADDRESS
    DMA0_DST_STRIDE1 = WIDE | 0x36, ABSENT, ADDRESS
    DMA0_IDX = WIDE | 0x37, ABSENT, ADDRESS
    DMA0_IDX_MAX = WIDE | 0x38, ABSENT, 0x7FFFFFFF0000
    DMA0_IDX_SKIP1 = WIDE | 0x39, ABSENT, ADDRESS
    IFM2_BASE0 = WIDE | 0x80, ADDRESS, ADDRESS
    IFM2_BASE1 = WIDE | 0x81, ADDRESS, ADDRESS
    IFM2_BASE2 = WIDE | 0x82, ADDRESS, ADDRESS
    IFM2_BASE3 = WIDE | 0x83, ADDRESS, ADDRESS
    IFM2_STRIDE_X = WIDE | 0x84, ADDRESS, ADDRESS
    IFM2_STRIDE_Y = WIDE | 0x85, ADDRESS, ADDRESS
    IFM2_STRIDE_C = WIDE | 0x86, ADDRESS, ADDRESS
    WEIGHT1_BASE = WIDE | 0x90, ADDRESS, ADDRESS
    WEIGHT1_LENGTH = WIDE | 0x91, LENGTH, LENGTH
    SCALE1_BASE = WIDE | 0x92, ADDRESS, ABSENT
    WEIGHT2_BASE = WIDE | 0x92, ABSENT, ADDRESS
    SCALE1_LENGTH = WIDE | 0x93, 0xFFFFF0000, ABSENT
    WEIGHT2_LENGTH = WIDE | 0x93, ABSENT, LENGTH
    WEIGHT3_BASE = WIDE | 0x94, ABSENT, ADDRESS
    WEIGHT3_LENGTH = WIDE | 0x95, ABSENT, LENGTH
    RESIZE_X = WIDE | 0x96, ABSENT, 0x07FF07FF7FFF
    RESIZE_Y = WIDE | 0x97, ABSENT, 0x07FF07FF7FFF


Table = Mapping[int, tuple[Do | Set, int]]  # by number: the command, and the bits that it may carry


def _table(column: int) -> Table:
    commands = (*Do, *Set)
    return {what.value[0]: (what, what.value[column]) for what in commands if what.value[column] != ABSENT}


TABLES: Mapping[Family, Table] = {Family.U55: _table(1), Family.U65: _table(1), Family.U85: _table(2)}


@dataclass(frozen=True)
class Command:
    """A command of a stream."""

    at: int  # bytes from the beginning of the stream
    what: Do | Set
    carries: int  # 48 bits: the parameter, and above it the second word

    @property
    def parameter(self) -> int:
        return self.carries & 0xFFFF


def decode_commands(words: bytes, family: Family) -> Iterator[Command]:
    """Yield the commands of a stream up to its STOP. Raise NpuFault at an illegal one."""
    table = TABLES[family]
    count = len(words) // 4
    at = 0
    while at < count:
        word = int.from_bytes(words[4 * at : 4 * at + 4], "little")
        number, parameter = word & 0xFFFF, word >> 16
        if number not in table:
            raise NpuFault(FaultKind.PARSE, f"no command has the number {number:#06x}", 4 * at)
        what, legal = table[number]
        carries, length = parameter, 1
        if number & WIDE:
            if at + 1 == count:
                break
            carries |= int.from_bytes(words[4 * at + 4 : 4 * at + 8], "little") << 16
            length = 2
        if carries & ~legal:
            raise NpuFault(
                FaultKind.PARSE, f"{what.name} carries {carries:#x}, of which {carries & ~legal:#x} is reserved", 4 * at
            )
        yield Command(4 * at, what, carries)
        if what is Do.STOP:
            return
        at += length
    raise NpuFault(FaultKind.PARSE, "the stream ends without STOP", 4 * count)

"""The commands of Ethos-U: what they are called, their numbers, and which of their bits may be set.

A command is a word of 32 bits: its number in bits 0 to 9, whether a second word follows in bit 14, a parameter in bits
16 to 31. What it carries is here one number of 48 bits: the parameter, and the second word above that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.npu.accelerators import Family

WIDE = 0x4000  # a second word follows


class Do(Enum):
    """Commands that start an operation."""

    STOP = auto()
    IRQ = auto()
    CONV = auto()
    DEPTHWISE = auto()
    POOL = auto()
    ELEMENTWISE = auto()
    RESIZE = auto()
    DMA_START = auto()
    DMA_WAIT = auto()
    KERNEL_WAIT = auto()
    PMU_MASK = auto()
    BRANCH = auto()


class Set(Enum):
    """Commands that set a register of the command stream; registers keep their values."""

    IFM_PAD_TOP = auto()
    IFM_PAD_LEFT = auto()
    IFM_PAD_RIGHT = auto()
    IFM_PAD_BOTTOM = auto()
    IFM_DEPTH_M1 = auto()
    IFM_PRECISION = auto()
    IFM_UPSCALE = auto()
    IFM_BROADCAST = auto()
    IFM_ZERO_POINT = auto()
    IFM_WIDTH0_M1 = auto()
    IFM_HEIGHT0_M1 = auto()
    IFM_HEIGHT1_M1 = auto()
    IFM_IB_END = auto()
    IFM_REGION = auto()
    OFM_WIDTH_M1 = auto()
    OFM_HEIGHT_M1 = auto()
    OFM_DEPTH_M1 = auto()
    OFM_PRECISION = auto()
    OFM_BLK_WIDTH_M1 = auto()
    OFM_BLK_HEIGHT_M1 = auto()
    OFM_BLK_DEPTH_M1 = auto()
    OFM_ZERO_POINT = auto()
    OFM_WIDTH0_M1 = auto()
    OFM_HEIGHT0_M1 = auto()
    OFM_HEIGHT1_M1 = auto()
    OFM_REGION = auto()
    KERNEL_WIDTH_M1 = auto()
    KERNEL_HEIGHT_M1 = auto()
    KERNEL_STRIDE = auto()
    PARALLEL_MODE = auto()
    ACC_FORMAT = auto()
    ACTIVATION = auto()
    ACTIVATION_MIN = auto()
    ACTIVATION_MAX = auto()
    WEIGHT_REGION = auto()
    SCALE_REGION = auto()
    AB_START = auto()
    RESIZE_X_SCALE_N_M1 = auto()
    RESIZE_Y_SCALE_N_M1 = auto()
    RESIZE_X_OFFSET = auto()
    RESIZE_Y_OFFSET = auto()
    WEIGHT_FORMAT = auto()
    BLOCKDEP = auto()
    DMA0_SRC_REGION = auto()
    DMA0_DST_REGION = auto()
    DMA0_SIZE0 = auto()
    DMA0_SIZE1 = auto()
    DMA0_IDX_REGION = auto()
    IFM2_BROADCAST = auto()
    IFM2_SCALAR = auto()
    IFM2_PRECISION = auto()
    IFM2_ZERO_POINT = auto()
    IFM2_WIDTH0_M1 = auto()
    IFM2_HEIGHT0_M1 = auto()
    IFM2_HEIGHT1_M1 = auto()
    IFM2_IB_START = auto()
    IFM2_REGION = auto()
    IFM_BASE0 = auto()
    IFM_BASE1 = auto()
    IFM_BASE2 = auto()
    IFM_BASE3 = auto()
    IFM_STRIDE_X = auto()
    IFM_STRIDE_Y = auto()
    IFM_STRIDE_C = auto()
    OFM_BASE0 = auto()
    OFM_BASE1 = auto()
    OFM_BASE2 = auto()
    OFM_BASE3 = auto()
    OFM_STRIDE_X = auto()
    OFM_STRIDE_Y = auto()
    OFM_STRIDE_C = auto()
    WEIGHT_BASE = auto()
    WEIGHT_LENGTH = auto()
    SCALE_BASE = auto()
    SCALE_LENGTH = auto()
    OFM_SCALE = auto()
    OPA_SCALE = auto()
    OPB_SCALE = auto()
    IFM_SCALE = auto()
    IFM2_SCALE = auto()
    OP_SCALAR = auto()
    DMA0_SRC = auto()
    DMA0_DST = auto()
    DMA0_LEN = auto()
    DMA0_SKIP0 = auto()
    DMA0_SKIP1 = auto()
    DMA0_SRC_STRIDE0 = auto()
    DMA0_SRC_STRIDE1 = auto()
    DMA0_DST_STRIDE0 = auto()
    DMA0_DST_STRIDE1 = auto()
    DMA0_IDX = auto()
    DMA0_IDX_MAX = auto()
    DMA0_IDX_SKIP1 = auto()
    IFM2_BASE0 = auto()
    IFM2_BASE1 = auto()
    IFM2_BASE2 = auto()
    IFM2_BASE3 = auto()
    IFM2_STRIDE_X = auto()
    IFM2_STRIDE_Y = auto()
    IFM2_STRIDE_C = auto()
    WEIGHT1_BASE = auto()
    WEIGHT1_LENGTH = auto()
    SCALE1_BASE = auto()
    SCALE1_LENGTH = auto()
    WEIGHT2_BASE = auto()
    WEIGHT2_LENGTH = auto()
    WEIGHT3_BASE = auto()
    WEIGHT3_LENGTH = auto()
    RESIZE_X = auto()
    RESIZE_Y = auto()


ADDRESS = 0xFFFFFFFF00FF  # of 40 bits
LENGTH = 0xFFFFFFFF0000
SHORT = 0xFFFF

Table = Mapping[int, tuple[Do | Set, int]]  # number (with WIDE): command, and the bits that it may carry

COMMON: Table = {
    0x000: (Do.STOP, SHORT),
    0x001: (Do.IRQ, SHORT),
    0x003: (Do.DEPTHWISE, 0),
    0x005: (Do.POOL, 0x7),
    0x006: (Do.ELEMENTWISE, 0x3F),
    0x010: (Do.DMA_START, 0),
    0x013: (Do.PMU_MASK, 0x1),
    0x100: (Set.IFM_PAD_TOP, 0x7F),
    0x101: (Set.IFM_PAD_LEFT, 0x7F),
    0x102: (Set.IFM_PAD_RIGHT, 0xFF),
    0x103: (Set.IFM_PAD_BOTTOM, 0xFF),
    0x104: (Set.IFM_DEPTH_M1, SHORT),
    0x107: (Set.IFM_UPSCALE, 0x3),
    0x109: (Set.IFM_ZERO_POINT, SHORT),
    0x10A: (Set.IFM_WIDTH0_M1, SHORT),
    0x10B: (Set.IFM_HEIGHT0_M1, SHORT),
    0x10C: (Set.IFM_HEIGHT1_M1, SHORT),
    0x10F: (Set.IFM_REGION, 0x7),
    0x111: (Set.OFM_WIDTH_M1, SHORT),
    0x112: (Set.OFM_HEIGHT_M1, SHORT),
    0x113: (Set.OFM_DEPTH_M1, SHORT),
    0x118: (Set.OFM_ZERO_POINT, SHORT),
    0x11A: (Set.OFM_WIDTH0_M1, SHORT),
    0x11B: (Set.OFM_HEIGHT0_M1, SHORT),
    0x11C: (Set.OFM_HEIGHT1_M1, SHORT),
    0x11F: (Set.OFM_REGION, 0x7),
    0x120: (Set.KERNEL_WIDTH_M1, SHORT),
    0x121: (Set.KERNEL_HEIGHT_M1, SHORT),
    0x122: (Set.KERNEL_STRIDE, 0x27F),
    0x126: (Set.ACTIVATION_MIN, SHORT),
    0x127: (Set.ACTIVATION_MAX, SHORT),
    0x128: (Set.WEIGHT_REGION, 0x7),
    0x129: (Set.SCALE_REGION, 0x7),
    0x132: (Set.DMA0_SIZE0, SHORT),
    0x133: (Set.DMA0_SIZE1, SHORT),
    0x189: (Set.IFM2_ZERO_POINT, SHORT),
    0x18A: (Set.IFM2_WIDTH0_M1, SHORT),
    0x18B: (Set.IFM2_HEIGHT0_M1, SHORT),
    0x18C: (Set.IFM2_HEIGHT1_M1, SHORT),
    0x18F: (Set.IFM2_REGION, 0x7),
    WIDE | 0x00: (Set.IFM_BASE0, ADDRESS),
    WIDE | 0x01: (Set.IFM_BASE1, ADDRESS),
    WIDE | 0x02: (Set.IFM_BASE2, ADDRESS),
    WIDE | 0x03: (Set.IFM_BASE3, ADDRESS),
    WIDE | 0x04: (Set.IFM_STRIDE_X, ADDRESS),
    WIDE | 0x05: (Set.IFM_STRIDE_Y, ADDRESS),
    WIDE | 0x06: (Set.IFM_STRIDE_C, ADDRESS),
    WIDE | 0x10: (Set.OFM_BASE0, ADDRESS),
    WIDE | 0x11: (Set.OFM_BASE1, ADDRESS),
    WIDE | 0x12: (Set.OFM_BASE2, ADDRESS),
    WIDE | 0x13: (Set.OFM_BASE3, ADDRESS),
    WIDE | 0x14: (Set.OFM_STRIDE_X, ADDRESS),
    WIDE | 0x15: (Set.OFM_STRIDE_Y, ADDRESS),
    WIDE | 0x16: (Set.OFM_STRIDE_C, ADDRESS),
    WIDE | 0x20: (Set.WEIGHT_BASE, ADDRESS),
    WIDE | 0x21: (Set.WEIGHT_LENGTH, LENGTH),
    WIDE | 0x22: (Set.SCALE_BASE, ADDRESS),
    WIDE | 0x23: (Set.SCALE_LENGTH, 0xFFFFF0000),
    WIDE | 0x30: (Set.DMA0_SRC, ADDRESS),
    WIDE | 0x31: (Set.DMA0_DST, ADDRESS),
    WIDE | 0x32: (Set.DMA0_LEN, ADDRESS),
    WIDE | 0x80: (Set.IFM2_BASE0, ADDRESS),
    WIDE | 0x81: (Set.IFM2_BASE1, ADDRESS),
    WIDE | 0x82: (Set.IFM2_BASE2, ADDRESS),
    WIDE | 0x83: (Set.IFM2_BASE3, ADDRESS),
    WIDE | 0x84: (Set.IFM2_STRIDE_X, ADDRESS),
    WIDE | 0x85: (Set.IFM2_STRIDE_Y, ADDRESS),
    WIDE | 0x86: (Set.IFM2_STRIDE_C, ADDRESS),
    WIDE | 0x90: (Set.WEIGHT1_BASE, ADDRESS),
    WIDE | 0x91: (Set.WEIGHT1_LENGTH, LENGTH),
}

U55_U65: Table = {
    **COMMON,
    0x002: (Do.CONV, 0),
    0x011: (Do.DMA_WAIT, 0x1),
    0x012: (Do.KERNEL_WAIT, 0x3),
    0x105: (Set.IFM_PRECISION, 0xC3CD),
    0x10D: (Set.IFM_IB_END, 0x3F),
    0x114: (Set.OFM_PRECISION, 0xC1C7),
    0x115: (Set.OFM_BLK_WIDTH_M1, 0x3F),
    0x116: (Set.OFM_BLK_HEIGHT_M1, 0x1F),
    0x117: (Set.OFM_BLK_DEPTH_M1, 0x7F),
    0x123: (Set.PARALLEL_MODE, 0x1),
    0x124: (Set.ACC_FORMAT, 0x3),
    0x125: (Set.ACTIVATION, 0x701F),
    0x12D: (Set.AB_START, 0x3F),
    0x12F: (Set.BLOCKDEP, 0x3),
    0x130: (Set.DMA0_SRC_REGION, 0x707),
    0x131: (Set.DMA0_DST_REGION, 0x707),
    0x180: (Set.IFM2_BROADCAST, 0xC7),
    0x181: (Set.IFM2_SCALAR, SHORT),
    0x185: (Set.IFM2_PRECISION, 0xCD),
    0x18D: (Set.IFM2_IB_START, 0x3F),
    WIDE | 0x24: (Set.OFM_SCALE, 0xFFFFFFFF003F),
    WIDE | 0x25: (Set.OPA_SCALE, 0xFFFFFFFF003F),
    WIDE | 0x26: (Set.OPB_SCALE, 0xFFFF0000),
    WIDE | 0x33: (Set.DMA0_SKIP0, ADDRESS),
    WIDE | 0x34: (Set.DMA0_SKIP1, ADDRESS),
    WIDE | 0x92: (Set.SCALE1_BASE, ADDRESS),
    WIDE | 0x93: (Set.SCALE1_LENGTH, 0xFFFFF0000),
}

U85: Table = {
    **COMMON,
    0x002: (Do.CONV, 0x1),
    0x007: (Do.RESIZE, 0x3),
    0x011: (Do.DMA_WAIT, 0x3),
    0x012: (Do.KERNEL_WAIT, 0x1),
    0x105: (Set.IFM_PRECISION, 0xC0CD),
    0x108: (Set.IFM_BROADCAST, 0xF),
    0x114: (Set.OFM_PRECISION, 0xFFC7),
    0x115: (Set.OFM_BLK_WIDTH_M1, 0x7F),
    0x116: (Set.OFM_BLK_HEIGHT_M1, 0x7F),
    0x117: (Set.OFM_BLK_DEPTH_M1, 0x3FF),
    0x124: (Set.ACC_FORMAT, 0x773),
    0x125: (Set.ACTIVATION, 0x10FF),
    0x12A: (Set.RESIZE_X_SCALE_N_M1, 0x7FF),
    0x12B: (Set.RESIZE_Y_SCALE_N_M1, 0x7FF),
    0x12C: (Set.RESIZE_X_OFFSET, 0xFFF),
    0x12D: (Set.RESIZE_Y_OFFSET, 0xFFF),
    0x12E: (Set.WEIGHT_FORMAT, 0x11),
    0x12F: (Set.BLOCKDEP, 0x7),
    0x130: (Set.DMA0_SRC_REGION, 0xF07),
    0x131: (Set.DMA0_DST_REGION, 0x907),
    0x134: (Set.DMA0_IDX_REGION, 0x7),
    0x180: (Set.IFM2_BROADCAST, 0xF),
    0x185: (Set.IFM2_PRECISION, 0xC0CD),
    WIDE | 0x24: (Set.OFM_SCALE, 0x7FFFFFFFE7FF),
    WIDE | 0x25: (Set.IFM_SCALE, 0x7FFFFFFF27FF),
    WIDE | 0x26: (Set.IFM2_SCALE, 0x7FFFFFFF27FF),
    WIDE | 0x27: (Set.OP_SCALAR, LENGTH),
    WIDE | 0x33: (Set.DMA0_SRC_STRIDE0, ADDRESS),
    WIDE | 0x34: (Set.DMA0_SRC_STRIDE1, ADDRESS),
    WIDE | 0x35: (Set.DMA0_DST_STRIDE0, ADDRESS),
    WIDE | 0x36: (Set.DMA0_DST_STRIDE1, ADDRESS),
    WIDE | 0x37: (Set.DMA0_IDX, ADDRESS),
    WIDE | 0x38: (Set.DMA0_IDX_MAX, 0x7FFFFFFF0000),
    WIDE | 0x39: (Set.DMA0_IDX_SKIP1, ADDRESS),
    WIDE | 0x92: (Set.WEIGHT2_BASE, ADDRESS),
    WIDE | 0x93: (Set.WEIGHT2_LENGTH, LENGTH),
    WIDE | 0x94: (Set.WEIGHT3_BASE, ADDRESS),
    WIDE | 0x95: (Set.WEIGHT3_LENGTH, LENGTH),
    WIDE | 0x96: (Set.RESIZE_X, 0x07FF07FF7FFF),
    WIDE | 0x97: (Set.RESIZE_Y, 0x07FF07FF7FFF),
    WIDE | 0x100: (Do.BRANCH, 0xFFFFFFFF0001),
}

TABLES: Mapping[Family, Table] = {Family.U55: U55_U65, Family.U65: U55_U65, Family.U85: U85}


@dataclass(frozen=True)
class Command:
    at: int  # bytes from the beginning of the stream
    what: Do | Set
    carries: int  # 48 bits: the parameter, and above it the second word

    @property
    def parameter(self) -> int:
        return self.carries & 0xFFFF


def decode(words: bytes, family: Family) -> Iterator[Command]:
    """The commands of a stream up to its STOP; a Fault where one is illegal."""
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

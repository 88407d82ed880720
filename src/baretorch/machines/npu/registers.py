"""The registers of a command stream, and the meaning of their bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from baretorch.machines.npu.commands import Set
from baretorch.machines.npu.faults import FaultKind, NpuFault

MOST = 1 << 24  # elements of a feature map; more is damage, because no microcontroller has memory for it

Int64s: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
BlockShape: TypeAlias = tuple[int, int, int]  # height, width, depth


class Registers:
    """Registers keep their values from operation to operation. Using one that was never set is a fault."""

    def __init__(self) -> None:
        self._values: dict[Set, int] = {}

    def set(self, which: Set, carries: int) -> None:
        self._values[which] = carries

    def __getitem__(self, which: Set) -> int:
        """Return the 16-bit parameter of the last command that set this register."""
        return self._whole(which) & 0xFFFF

    def second(self, which: Set) -> int:
        """Return the second word: 32 bits."""
        return self._whole(which) >> 16

    def address(self, which: Set) -> int:
        """Return an address of 40 bits."""
        value = self._whole(which)
        return value >> 16 | (value & 0xFF) << 32

    def stride(self, which: Set) -> int:
        """Return 40 bits in two's complement."""
        value = self.address(which)
        return value - (1 << 40) if value >> 39 else value - (1 << 32) if value >> 31 == 1 else value

    def bits(self, which: Set, low: int, count: int) -> int:
        return self[which] >> low & ((1 << count) - 1)

    def signed(self, which: Set, signed: bool = True) -> int:
        """Return the parameter of 16 bits, with or without a sign."""
        value = self[which]
        return value - 0x10000 if signed and value & 0x8000 else value

    def _whole(self, which: Set) -> int:
        if which not in self._values:
            raise NpuFault(FaultKind.STRICT, f"{which.name} was never set")
        return self._values[which]


@dataclass(frozen=True)
class Element:
    """The type of a feature map's elements."""

    size: int  # bytes
    signed: bool

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(f"<{'i' if self.signed else 'u'}{self.size}")

    @property
    def low(self) -> int:
        return -(1 << (8 * self.size - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (8 * self.size - (1 if self.signed else 0))) - 1


@dataclass(frozen=True)
class Surface:
    """The layout of a feature map in a region: up to four tiles, with rows of pixels or of bricks of 16 channels."""

    name: str
    region: int
    element: Element
    bricks: bool
    bases: tuple[int, ...]  # of the four tiles
    width0: int
    height0: int
    height1: int
    stride_y: int
    stride_x: int
    stride_c: int

    def addresses(self, shape: BlockShape) -> Int64s:
        """Return the address of the first byte of every element, within its region."""
        height, width, depth = check_size(shape)
        size = self.element.size
        y, x = np.arange(height)[:, None], np.arange(width)[None, :]
        right = x >= self.width0
        below = y >= np.where(right, self.height1, self.height0)
        base = np.array(self.bases)[right + 2 * below]
        row = y - np.where(below, np.where(right, self.height1, self.height0), 0)
        column = x - np.where(right, self.width0, 0)
        c = np.arange(depth)
        if self.bricks:
            pixels = base + row * self.stride_y + column * (16 * size)
            channels = c // 16 * self.stride_c + c % 16 * size
        else:
            pixels = base + row * self.stride_y + column * self.stride_x
            channels = c * size
        return (pixels[:, :, None] + channels).astype(np.int64)

    def check(self, shape: BlockShape) -> None:
        """Check that addresses and strides have the alignment that the hardware needs."""
        height, width, depth = shape
        if height * width * depth > MOST:
            raise NpuFault(
                FaultKind.BUS, f"{self.name} has {height * width * depth:,} elements, more than there is memory for"
            )
        used = [True, width > self.width0, height > self.height0, width > self.width0 and height > self.height1]
        unit = 16 if self.bricks else self.element.size
        for base, use in zip(self.bases, used, strict=True):
            if use and base % unit:
                raise NpuFault(FaultKind.BUS, f"{self.name} begins at {base:#x}, which is not a multiple of {unit}")
        strides = (self.stride_y, self.stride_c) if self.bricks else (self.stride_y, self.stride_x)
        for stride in strides:
            if stride % unit:
                raise NpuFault(FaultKind.BUS, f"a stride of {self.name} is {stride}, which is not a multiple of {unit}")


@dataclass(frozen=True)
class FeatureMap:
    """A feature map of an operation. The names of its registers begin with `prefix`."""

    name: str
    prefix: str

    def register(self, name: str) -> Set:
        return Set[f"{self.prefix}_{name}"]


IFM = FeatureMap("the input", "IFM")
IFM2 = FeatureMap("the second input", "IFM2")
OFM = FeatureMap("the output", "OFM")


def element(r: Registers, names: FeatureMap) -> Element:
    low = 1 if names is OFM else 2
    precision = names.register("PRECISION")
    return Element(1 << r.bits(precision, low, 2), bool(r.bits(precision, 0, 1)))


def zero_point(r: Registers, names: FeatureMap, element: Element) -> int:
    return r.signed(names.register("ZERO_POINT"), element.signed)


def surface(r: Registers, names: FeatureMap) -> Surface:
    form = r.bits(names.register("PRECISION"), 6, 2)
    if form > 1:
        raise NpuFault(FaultKind.PARSE, f"{names.name} has the unknown format {form}")
    return Surface(
        name=names.name,
        region=r[names.register("REGION")],
        element=element(r, names),
        bricks=form == 1,
        bases=tuple(r.address(names.register(f"BASE{i}")) for i in range(4)),
        width0=r[names.register("WIDTH0_M1")] + 1,
        height0=r[names.register("HEIGHT0_M1")] + 1,
        height1=r[names.register("HEIGHT1_M1")] + 1,
        stride_y=r.stride(names.register("STRIDE_Y")),
        stride_x=r.stride(names.register("STRIDE_X")),
        stride_c=r.stride(names.register("STRIDE_C")),
    )


def check_size(shape: BlockShape) -> BlockShape:
    if shape[0] * shape[1] * shape[2] > MOST:
        raise NpuFault(FaultKind.MODEL, f"a feature map of {shape[0]}x{shape[1]}x{shape[2]} elements")
    return shape


def ofm_shape(r: Registers) -> BlockShape:
    return check_size((r[Set.OFM_HEIGHT_M1] + 1, r[Set.OFM_WIDTH_M1] + 1, r[Set.OFM_DEPTH_M1] + 1))


@dataclass(frozen=True)
class Window:
    """A kernel's window: its size before dilation, and how it moves."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    top: int
    left: int
    bottom: int
    right: int
    part_kernel: bool

    def needs(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the input that this many of the output need, without padding."""
        rows = (height - 1) * self.stride_y + (self.height - 1) * self.dilation_y + 1 - self.top - self.bottom
        columns = (width - 1) * self.stride_x + (self.width - 1) * self.dilation_x + 1 - self.left - self.right
        if rows < 1 or columns < 1:
            raise NpuFault(FaultKind.PARSE, "the window covers nothing but padding")
        return rows, columns


def window(r: Registers) -> Window:
    word = r[Set.KERNEL_STRIDE]
    dilation_x, dilation_y = 1 + (word >> 3 & 1), 1 + (word >> 4 & 1)
    height, width = r[Set.KERNEL_HEIGHT_M1], r[Set.KERNEL_WIDTH_M1]
    if height % dilation_y or width % dilation_x:
        raise NpuFault(FaultKind.PARSE, f"a kernel of {height + 1}x{width + 1} does not fit its dilation")
    if word >> 5 & 1:
        raise NpuFault(FaultKind.MODEL, "kernels in parts of 4x4")
    return Window(
        height=height // dilation_y + 1,
        width=width // dilation_x + 1,
        stride_y=1 + (word >> 1 & 1) + 2 * (word >> 9 & 1),
        stride_x=1 + (word & 1) + 2 * (word >> 6 & 1),
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        top=r[Set.IFM_PAD_TOP],
        left=r[Set.IFM_PAD_LEFT],
        bottom=r[Set.IFM_PAD_BOTTOM],
        right=r[Set.IFM_PAD_RIGHT],
        part_kernel=bool(word >> 2 & 1),
    )


POINT = Window(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, False)  # reads one element of the input for each of the output

"""Cases of windows that lie entirely in padding: whole rows and columns of outputs on each side of the image.

Several geometries are tried with each kind of layer. `AROUND` has padding larger than the kernel on all sides, and rows
that are long enough for a run of whole windows. `STEPS` adds stride and dilation, `SPREAD` dilation along the width,
which some kernels do not take. In `BEFORE` the image begins after the last column of windows. `ABOVE` is for pools:
whole windows come first in a row, so that no memory was written before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baretorch.ir.graph import Shape
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.int8.integer_sums import IntConv2d
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qconv2d16 import QConv2d16
from baretorch.ops.int8.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.int8.qpool import QAvgPool2d, QAvgPool16, QMaxPool16
from baretorch.ops.int8.qsums import QSums
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from tests.ops.case import Case, normal
from tests.ops.cases import half, int4, int8, int8_more, int8_small, int16, integer, layers, narrow, pools, sums


@dataclass(frozen=True)
class Geometry:
    """Where the windows lie."""

    name: str
    image: Pair
    kernel: Pair
    padding: Padding
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)

    def x(self, channels: int) -> Shape:
        return 1, *self.image, channels

    def weight(self, out: int, depth: int) -> Shape:
        return out, *self.kernel, depth


AROUND = Geometry("padding around", (2, 6), (3, 3), (4, 5, 4, 3))
STEPS = Geometry("padding and steps", (2, 7), (2, 3), (5, 7, 4, 7), (2, 2), (3, 1))
SPREAD = Geometry("padding and dilation", (2, 5), (2, 2), (3, 2, 7, 4), (1, 1), (1, 3))
ABOVE = Geometry("padding above and below", (2, 8), (3, 3), (4, 5, 0, 0))
BEFORE = Geometry("padding before", (6, 1), (2, 2), (1, 4, 7, 0), (2, 5))
ROWS = Geometry("rows of padding", (1, 5), (1, 1), (2, 1, 1, 1))


def floats(g: Geometry) -> Iterator[Case]:
    def conv(name: str, in_: int, out: int, groups: int = 1, pool: Pair = (1, 1), lo: float = -1.0) -> Iterator[Case]:
        shapes = normal(g.x(in_), g.weight(out, in_ // groups), (out,))
        yield layers.conv2d(
            f"{g.name}, {name}", Conv2d(g.stride, g.padding, g.dilation, groups, lo=lo, pool=pool), shapes
        )
        yield half.rounded(
            layers.conv2d(
                f"half, {g.name}, {name}",
                Conv2d(g.stride, g.padding, g.dilation, groups, lo=lo, pool=pool, half=True),
                shapes,
            )
        )

    if g is ABOVE:
        yield from conv("pooled", 2, 9, pool=(2, 3), lo=0.0)
        return
    yield from conv("dense", 2, 9)
    yield from conv("depthwise", 9, 9, groups=9)


def bytes_(g: Geometry) -> Iterator[Case]:
    own = (3, -4, 0, -100, 127, g.stride, g.padding, g.dilation)

    def conv(name: str, in_: int, out: int, groups: int = 1, pool: Pair = (1, 1)) -> Case:
        weights = int8.layer(g.x(in_), g.weight(out, in_ // groups), 0.002)
        return int8.qconv2d(f"{g.name}, {name}", QConv2d(*own, groups, pool), weights)

    def conv4(name: str, in_: int, out: int, groups: int = 1) -> Case:
        weights = int4.nibbles(int8.layer(g.x(in_), g.weight(out, in_ // groups), 0.01))
        return int8.qconv2d(f"int4, {g.name}, {name}", QConv2d(*own, groups, bits=4), weights)

    if g is ABOVE:
        yield conv("pooled", 4, 6, pool=(2, 3))
        return
    yield conv("dense", 8, 6)
    yield conv("odd", 3, 5)
    yield conv("depthwise", 8, 8, groups=8)
    yield conv("depthwise, odd", 5, 5, groups=5)
    yield conv4("dense", 4, 6)
    yield conv4("odd", 3, 5)
    yield conv4("depthwise", 8, 8, groups=8)
    if g is AROUND:
        yield conv("groups", 4, 6, groups=2)
        yield conv("sixteens", 16, 4)
        yield conv4("groups", 4, 6, groups=2)
        for name, groups in (("dense", 1), ("depthwise", 8)):
            weights = narrow.narrow(g.x(8), g.weight(8, 8 // groups), 18, 0.002)
            yield int8.qconv2d(f"narrow, {g.name}, {name}", QConv2d(*own, groups), weights)
        for before in ((9,), (1, 9, 11, 9)):
            yield sums.qsums(g.name, QSums(5, 4, padding=g.padding), sums.parts(g.x(8), before, g.weight(9, 4)))


def halfwords(g: Geometry) -> Iterator[Case]:
    for name, in_, out, groups in (("dense", 3, 6, 1), ("odd", 3, 3, 1), ("depthwise", 9, 9, 9)):
        op = QConv2d16(0, -20000, 32767, g.stride, g.padding, g.dilation, groups)
        yield int16.conv(f"{g.name}, {name}", op, int16.layer(g.x(in_), g.weight(out, in_ // groups), 0.003))


def reductions(g: Geometry) -> Iterator[Case]:
    at, third = (g.kernel, g.stride), (1 << 32) // 3
    yield pools.max_pool2d(g.name, MaxPool2d(*at, g.padding, g.dilation), normal(g.x(3)))
    if g.dilation != (1, 1):
        return
    yield pools.avg_pool2d(g.name, AvgPool2d(*at, g.padding), normal(g.x(3)))
    for channels in (3, 9):
        yield int8_small.qmax(f"{g.name}, {channels}", MaxPool2d(*at, g.padding), g.x(channels))
        yield int8_small.qavg(f"{g.name}, {channels}", QAvgPool2d(*at, 7, third, 0, -9, g.padding), g.x(channels))
    for channels in (1, 9):
        yield int16.max_pool(f"{g.name}, {channels}", QMaxPool16(*at, g.padding), g.x(channels))
        yield int16.avg_pool(f"{g.name}, {channels}", QAvgPool16(*at, g.padding, third), g.x(channels))


def transposed() -> Iterator[Case]:
    """Rows and columns of outputs that no input reaches: after the last, and between two where strides are larger than
    the kernel; and inputs whose outputs are all cut off."""
    for name, stride, padding, dilation in (
        ("nothing behind", (1, 1), (0, -4, 0, -5), (1, 1)),
        ("nothing between", (4, 3), (0, -2, 1, -3), (1, 1)),
        ("all of an input cut off", (3, 3), (4, 3, 5, 4), (2, 1)),
    ):
        for kind, in_, groups in (("dense", 5, 1), ("depthwise", 4, 4)):
            x, weight = (1, 4, 5, in_), (4, 2, 2, in_ // groups)
            plain = ConvTranspose2d(stride, padding, dilation, groups)
            yield layers.conv_transpose2d(f"{name}, {kind}", plain, normal(x, weight, (4,)))
            op = QConvTranspose2d(7, -3, 0, -90, 120, stride, padding, dilation, groups)
            yield int8_more.qconv_transpose2d(f"{name}, {kind}", op, int8.layer(x, weight, 0.002))


CASES = (
    *(case for g in (AROUND, STEPS, ABOVE, BEFORE) for case in floats(g)),
    *(case for g in (AROUND, STEPS, SPREAD, ABOVE, BEFORE) for case in bytes_(g)),
    *(case for g in (AROUND, STEPS, SPREAD, BEFORE) for case in halfwords(g)),
    *(case for g in (AROUND, STEPS, BEFORE) for case in reductions(g)),
    *transposed(),
    integer.layer(AROUND.name, IntConv2d(-7, padding=AROUND.padding), AROUND.x(4), AROUND.weight(6, 4)),
    layers.conv2d(ROWS.name, Conv2d(padding=ROWS.padding), normal(ROWS.x(1), ROWS.weight(8, 1), (8,))),
    layers.conv2d(
        "padding around, groups", Conv2d(padding=AROUND.padding, groups=2), normal(AROUND.x(4), AROUND.weight(6, 2))
    ),
)

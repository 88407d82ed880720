"""Cases of int8 layers around what vectors hold: taps in sixteens, channels in fours, positions in twos."""

from __future__ import annotations

from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.pool import MaxPool2d
from tests.ops.cases.int8 import SAME, layer, qconv2d, qlinear
from tests.ops.cases.int8_small import PRODUCT, SUM, octets, qadd, qavg, qmax, qmul

LINEAR = tuple(
    qlinear(f"{in_} to {out}, batch {batch}", QLinear(-3, lo=-100, hi=99), layer((batch, in_), (out, in_), 0.002))
    for batch, in_, out in ((1, 15, 4), (1, 17, 5), (1, 33, 3), (2, 16, 4), (2, 31, 1), (3, 33, 7), (5, 48, 2))
)

PIXELS = tuple(
    qconv2d(f"pixels, {in_} to {out}", QConv2d(4, -9, hi=80), layer((1, 3, 3, in_), (out, 1, 1, in_), 0.002))
    for in_, out in ((1, 1), (3, 4), (8, 6), (15, 5), (16, 3), (17, 8), (33, 2), (48, 9), (80, 6), (128, 4), (144, 3))
)

CHANNELS = tuple(
    qconv2d(f"3x3, {in_} to {out}", QConv2d(-6, 5, padding=SAME), layer((1, 4, 5, in_), (out, 3, 3, in_), 0.0006))
    for in_, out in ((1, 5), (2, 4), (15, 2), (16, 1), (17, 6), (33, 3))
)

THREES = tuple(
    qconv2d(f"3x3 in fours, {name}", op, layer(shape, (out, 3, 3, shape[3]), 0.0006))
    for name, op, shape, out in (
        ("16 to 2", QConv2d(-6, 5, padding=SAME, lo=-70), (1, 3, 4, 16), 2),
        ("32 to 6", QConv2d(-6, 5, padding=SAME), (2, 4, 7, 32), 6),
        ("48 to 4, every second row", QConv2d(3, -5, stride=(2, 1), padding=(0, 1, 2, 3)), (1, 7, 5, 48), 4),
        ("80 to 2, no padding", QConv2d(3, -5, hi=60), (1, 5, 11, 80), 2),
        ("16 to 4, padding only", QConv2d(3, -5, padding=(3, 4, 0, 9)), (1, 1, 1, 16), 4),
    )
)

WINDOWS = (
    qconv2d("wide strides", QConv2d(-6, 5, stride=(3, 4), lo=-60), layer((2, 9, 14, 5), (6, 2, 3, 5), 0.002)),
    qconv2d("dilated, phases", QConv2d(7, 5, padding=(0, 0, 4, 0), dilation=(1, 4)), layer((1, 1, 9, 6), (5, 1, 2, 6))),
    qconv2d("dilated, few outputs", QConv2d(7, 5, dilation=(2, 3)), layer((1, 5, 8, 17), (5, 2, 3, 17), 0.0008)),
    qconv2d("dilated, padded", QConv2d(7, 5, padding=(3, 3, 5, 6), dilation=(3, 3)), layer((1, 4, 5, 4), (4, 3, 3, 4))),
    qconv2d("dilated, strided", QConv2d(7, 5, stride=(2, 2), dilation=(2, 2)), layer((1, 9, 9, 4), (4, 3, 3, 4))),
    qconv2d("padding on one side", QConv2d(7, 5, padding=(0, 3, 0, 5)), layer((1, 3, 4, 16), (4, 2, 3, 16), 0.0008)),
    qconv2d("padding above the kernel", QConv2d(7, 5, padding=(4, 0, 5, 0)), layer((1, 3, 4, 3), (4, 2, 3, 3))),
    qconv2d("pooled by columns", QConv2d(2, -3, pool=(1, 2)), layer((1, 4, 9, 17), (18, 3, 3, 17), 0.0004)),
    qconv2d("pooled by rows", QConv2d(2, -3, pool=(3, 1), hi=50), layer((2, 8, 5, 3), (33, 3, 3, 3), 0.001)),
    qconv2d("pooled by nine", QConv2d(2, -3, padding=SAME, pool=(3, 3)), layer((1, 7, 9, 4), (5, 3, 3, 4))),
    qconv2d("pooled, strided", QConv2d(2, -3, stride=(2, 2), pool=(2, 2)), layer((1, 11, 9, 4), (16, 3, 3, 4))),
    qconv2d("pooled, dilated", QConv2d(2, -3, dilation=(1, 2), pool=(2, 2)), layer((1, 7, 9, 4), (6, 3, 2, 4))),
)  # fmt: skip

DEPTHWISE = tuple(
    qconv2d(
        f"depthwise {kernel[0]}x{kernel[1]}, {channels} channels",
        QConv2d(-11, 4, padding=padding, stride=stride, groups=channels, lo=-90),
        layer((1, 7, 6, channels), (channels, *kernel, 1), 0.003),
    )
    for channels, kernel, stride, padding in (
        (4, (3, 3), (1, 1), (2, 2, 2, 2)),
        (5, (4, 4), (1, 1), (1, 2, 1, 2)),
        (9, (1, 3), (1, 1), (0, 0, 1, 1)),
        (15, (3, 1), (2, 1), (1, 1, 0, 0)),
        (17, (2, 2), (3, 3), (0, 0, 0, 0)),
        (33, (1, 1), (1, 2), (0, 0, 0, 0)),
        (6, (5, 5), (1, 1), (2, 2, 2, 2)),
    )
)

SMALL = (
    qadd("seventeen", SUM, octets((2, 17), (2, 17))),
    qmul("seventeen", PRODUCT, octets((2, 17), (2, 17))),
    qavg("seventeen channels", QAvgPool2d((2, 2), (2, 2), 3, 2**30, 0, 4), (1, 4, 5, 17)),
    qmax("seventeen channels", MaxPool2d((2, 2), (2, 2)), (1, 4, 5, 17)),
    qmax("33 channels", MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1)), (1, 4, 3, 33)),
)

CASES = (*LINEAR, *PIXELS, *CHANNELS, *THREES, *WINDOWS, *DEPTHWISE, *SMALL)

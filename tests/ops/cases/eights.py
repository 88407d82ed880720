"""Cases of linear and conv2d for kernels that compute eight outputs of two pixels together: what is left over, and what
padding cuts off."""

from __future__ import annotations

from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from tests.ops.case import negative_nan, normal, spoiled
from tests.ops.cases.layers import conv2d, linear

CASES = (
    linear("eight of eight", Linear(), normal((1, 8), (8, 8), (8,))),
    linear("rest of every kind", Linear(lo=0.0), normal((5, 29), (23, 29), (23,))),
    linear("negative nan", Linear(lo=0.0), negative_nan((3, 9), (9, 9), (9,))),
    conv2d("pointwise pairs", Conv2d(lo=0.0), normal((2, 3, 3, 12), (16, 1, 1, 12), (16,))),
    conv2d("pointwise stride", Conv2d((2, 2)), normal((1, 7, 6, 5), (11, 1, 1, 5), (11,))),
    conv2d("edges on all sides", Conv2d(padding=(1, 1, 1, 1), lo=0.0), normal((1, 7, 8, 3), (8, 3, 3, 3), (8,))),
    conv2d("asymmetric stride", Conv2d((2, 2), (4, 5, 1, 1)), normal((1, 21, 10, 1), (17, 10, 4, 1), (17,))),
    conv2d("kernel above image", Conv2d(padding=(3, 2, 2, 3)), normal((1, 3, 2, 5), (9, 5, 5, 5), (9,))),
    conv2d("windows of padding", Conv2d((1, 2), (5, 4, 6, 5)), normal((1, 3, 4, 2), (10, 2, 3, 2), (10,))),
    conv2d("dilated rows", Conv2d((2, 1), (3, 4, 1, 1), (3, 1)), normal((1, 11, 6, 4), (12, 3, 3, 4), (12,))),
    conv2d("dilated column", Conv2d(padding=(4, 4, 0, 0), dilation=(2, 5)), normal((1, 9, 2, 3), (8, 5, 1, 3), (8,))),
    conv2d("pool edges", Conv2d((1, 1), (1, 1, 1, 1), lo=0.0, pool=(2, 2)), normal((1, 7, 8, 3), (19, 3, 3, 3), (19,))),
    conv2d("pool of three", Conv2d((2, 1), (0, 2, 2, 1), pool=(1, 3)), normal((2, 6, 9, 2), (8, 3, 3, 2), (8,))),
    conv2d("pool, relu6", Conv2d(lo=0.0, hi=6.0, pool=(3, 2)), normal((1, 8, 8, 9), (9, 2, 2, 9), (9,))),
    conv2d("pool, nan", Conv2d(padding=(1, 1, 1, 1), pool=(2, 2)), spoiled((1, 8, 8, 1), (9, 3, 3, 1), (9,))),
    conv2d("pool, negative nan", Conv2d(lo=0.0, pool=(2, 2)), negative_nan((1, 8, 8, 2), (9, 3, 3, 2), (9,))),
    conv2d("relu, nan", Conv2d(padding=(1, 1, 1, 1), lo=0.0), spoiled((1, 8, 8, 2), (16, 3, 3, 2), (16,))),
    conv2d("relu, negative nan", Conv2d(lo=0.0), negative_nan((1, 6, 6, 3), (8, 3, 3, 3), (8,))),
    conv2d("depthwise 8", Conv2d((1, 1), (1, 1, 1, 1), groups=8, lo=0.0), normal((1, 6, 5, 8), (8, 3, 3, 1), (8,))),
    conv2d("depthwise 21", Conv2d((2, 2), (0, 1, 0, 1), groups=21), normal((2, 8, 8, 21), (21, 3, 3, 1), (21,))),
    conv2d("depthwise 5x4", Conv2d((1, 2), (2, 2, 3, 1), groups=16), normal((1, 7, 9, 16), (16, 5, 4, 1), (16,))),
    conv2d("depthwise above image", Conv2d(padding=(3, 3, 2, 2), groups=9), normal((1, 2, 3, 9), (9, 5, 5, 1), (9,))),
    conv2d("depthwise dilated", Conv2d((1, 1), (2, 2, 1, 1), (2, 1), 8), normal((1, 7, 6, 8), (8, 3, 3, 1), (8,))),
    conv2d("depthwise column", Conv2d(padding=(1, 1, 0, 0), groups=8), normal((1, 9, 1, 8), (8, 3, 1, 1), (8,))),
    conv2d("depthwise pool", Conv2d(groups=8, pool=(2, 2)), normal((1, 7, 7, 8), (8, 2, 2, 1), (8,))),
    conv2d("depthwise, nan", Conv2d(groups=8, lo=0.0), negative_nan((1, 6, 6, 8), (8, 3, 3, 1), (8,))),
)

"""The case table: per operator the shapes that are easy to get wrong. Every rung runs all of it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import torch
import torch.nn.functional as F

from baretorch.ir import Shape
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Binary, Clamp, Mul, Sigmoid, Tanh
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from tests.ops.case import Case, Inputs, counted, normal, spoiled, values


def nchw(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


def nhwc(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def linear(name: str, op: Linear, inputs: Inputs) -> Case:
    def run(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *weights).clamp(op.lo, op.hi)

    return Case(f"linear {name}", op, inputs, run, activations=1)


def conv2d(name: str, op: Conv2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        x = F.pad(nchw(x), (left, right, top, bottom))
        y = F.conv2d(x, nchw(weight), bias, op.stride, 0, op.dilation, op.groups)
        return nhwc(F.max_pool2d(y, op.pool).clamp(op.lo, op.hi))

    return Case(f"conv2d {name}", op, inputs, run, activations=1)


def max_pool2d(name: str, op: MaxPool2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        x, padding = nchw(x), (top, left)
        if (top, left) != (bottom, right):
            x, padding = F.pad(x, (left, right, top, bottom), value=-inf), (0, 0)
        return nhwc(F.max_pool2d(x, op.kernel, op.stride, padding, op.dilation, op.ceil_mode))

    return Case(f"max_pool2d {name}", op, inputs, run)


def avg_pool2d(name: str, op: AvgPool2d, inputs: Inputs) -> Case:
    top, bottom, left, right = op.padding

    def run(x: torch.Tensor) -> torch.Tensor:
        x, padding = nchw(x), (top, left)
        if (top, left) != (bottom, right):
            assert op.count_include_pad and not op.ceil_mode, "PyTorch has no such pool"
            x, padding = F.pad(x, (left, right, top, bottom)), (0, 0)
        divisor = op.divisor or None
        return nhwc(F.avg_pool2d(x, op.kernel, op.stride, padding, op.ceil_mode, op.count_include_pad, divisor))

    return Case(f"avg_pool2d {name}", op, inputs, run)


def binary(name: str, op: Binary, inputs: Inputs) -> Case:
    functions: dict[type[Binary], Callable[..., torch.Tensor]] = {Add: torch.add, Mul: torch.mul}
    function = functions[type(op)]
    return Case(f"{op.name} {name}", op, inputs, lambda a, b: function(a, b).clamp(op.lo, op.hi))


def unary(name: str, op: Clamp | Tanh | Sigmoid, inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return (
            x.clamp(op.lo, op.hi) if isinstance(op, Clamp) else torch.tanh(x) if isinstance(op, Tanh) else x.sigmoid()
        )

    return Case(f"{op.name} {name}", op, inputs, run)


def softmax(name: str, axis: int, inputs: Inputs) -> Case:
    return Case(f"softmax {name}", Softmax(axis), inputs, lambda x: torch.softmax(x, axis))


def mean(name: str, axes: tuple[int, ...], keepdim: bool, inputs: Inputs) -> Case:
    return Case(f"mean {name}", Mean(axes, keepdim), inputs, lambda x: x.mean(axes, keepdim))


def permute(shape: Shape, dims: tuple[int, ...]) -> Case:
    return Case(f"permute {shape} to {dims}", Permute(dims), normal(shape), lambda x: x.permute(dims))


def reshape(shape: Shape, to: Shape) -> Case:
    return Case(f"reshape {shape} to {to}", Reshape(to), normal(shape), lambda x: x.reshape(to))


def pad(name: str, op: Pad, shape: Shape) -> Case:
    last_first = [n for pair in reversed(op.padding) for n in pair]
    return Case(f"pad {name}", op, normal(shape), lambda x: F.pad(x, last_first, value=op.value))


LINEAR = (
    linear("one by one", Linear(), normal((1, 1), (1, 1), (1,))),
    linear("no bias", Linear(), normal((1, 7), (3, 7))),
    linear("vector", Linear(), normal((5,), (2, 5), (2,))),
    linear("batch", Linear(), normal((3, 13), (17, 13), (17,))),
    linear("three dimensions", Linear(), normal((2, 3, 8), (5, 8), (5,))),
    linear("wide", Linear(), normal((1, 300), (10, 300), (10,))),
    linear("relu", Linear(lo=0.0), normal((4, 9), (6, 9), (6,))),
    linear("relu6", Linear(lo=0.0, hi=6.0), normal((4, 64), (6, 64), (6,))),
    linear("nan and infinity", Linear(lo=0.0, hi=6.0), spoiled((6, 5), (3, 5), (3,))),
)

CONV2D = (
    conv2d("one by one", Conv2d(), normal((1, 1, 1, 1), (1, 1, 1, 1), (1,))),
    conv2d("no bias", Conv2d(), normal((1, 5, 5, 2), (3, 3, 3, 2))),
    conv2d("pointwise", Conv2d(), normal((1, 4, 3, 8), (5, 1, 1, 8), (5,))),
    conv2d("batch", Conv2d(padding=(1, 1, 1, 1)), normal((2, 6, 5, 3), (4, 3, 3, 3), (4,))),
    conv2d("kernel is the image", Conv2d(), normal((1, 5, 7, 3), (2, 5, 7, 3), (2,))),
    conv2d("odd everything", Conv2d((2, 3), (1, 0, 2, 1)), normal((1, 9, 11, 3), (5, 3, 4, 3), (5,))),
    conv2d("stride above kernel", Conv2d((3, 4)), normal((1, 10, 13, 2), (3, 2, 2, 2), (3,))),
    conv2d("padding above kernel", Conv2d(padding=(4, 5, 3, 6)), normal((1, 3, 2, 2), (3, 3, 3, 2), (3,))),
    conv2d("padding on one side", Conv2d((2, 2), (0, 1, 0, 1)), normal((1, 8, 8, 3), (4, 3, 3, 3), (4,))),
    conv2d("dilation", Conv2d((1, 2), (2, 2, 0, 3), (2, 3)), normal((1, 9, 12, 2), (3, 3, 3, 2), (3,))),
    conv2d("groups", Conv2d(padding=(1, 1, 1, 1), groups=2), normal((1, 5, 4, 6), (4, 3, 3, 3), (4,))),
    conv2d("depthwise", Conv2d((2, 2), (1, 1, 1, 1), groups=5), normal((1, 7, 6, 5), (5, 3, 3, 1), (5,))),
    conv2d("depthwise times 3", Conv2d(padding=(0, 1, 1, 0), groups=4), normal((1, 5, 5, 4), (12, 3, 3, 1), (12,))),
    conv2d("one column", Conv2d(padding=(2, 2, 0, 0)), normal((1, 16, 1, 4), (8, 5, 1, 4), (8,))),
    conv2d("relu", Conv2d(lo=0.0), normal((1, 6, 6, 3), (4, 3, 3, 3), (4,))),
    conv2d("relu6", Conv2d(lo=0.0, hi=6.0), normal((1, 6, 6, 16), (4, 3, 3, 16), (4,))),
    conv2d("pool", Conv2d(lo=0.0, pool=(2, 2)), normal((1, 10, 10, 1), (6, 3, 3, 1), (6,))),
    conv2d("pool with rest", Conv2d(padding=(1, 1, 1, 1), pool=(2, 3)), normal((1, 7, 8, 2), (3, 3, 3, 2), (3,))),
    conv2d(
        "pool, depthwise, stride",
        Conv2d((2, 1), (1, 1, 1, 1), groups=3, lo=0.0, pool=(3, 1)),
        normal((2, 13, 5, 3), (6, 3, 3, 1), (6,)),
    ),
    conv2d("nan and infinity", Conv2d(padding=(1, 1, 1, 1)), spoiled((1, 8, 8, 2), (3, 3, 3, 2), (3,))),
    conv2d("nan and infinity, pool", Conv2d(lo=0.0, pool=(2, 2)), spoiled((1, 12, 12, 2), (3, 3, 3, 2), (3,))),
)

MAX_POOL2D = (
    max_pool2d("one by one", MaxPool2d((1, 1), (1, 1)), normal((1, 1, 1, 1))),
    max_pool2d("halves", MaxPool2d((2, 2), (2, 2)), normal((1, 8, 6, 3))),
    max_pool2d("with rest", MaxPool2d((2, 2), (2, 2)), normal((2, 7, 5, 3))),
    max_pool2d("overlapping", MaxPool2d((3, 3), (2, 2), (1, 1, 1, 1)), normal((1, 9, 8, 2))),
    max_pool2d("oblong", MaxPool2d((1, 4), (2, 3), (0, 0, 2, 2)), normal((1, 5, 9, 2))),
    max_pool2d("stride above kernel", MaxPool2d((2, 2), (3, 5)), normal((1, 10, 11, 2))),
    max_pool2d("dilation", MaxPool2d((3, 2), (1, 2), (1, 1, 1, 1), (2, 3)), normal((1, 9, 9, 2))),
    max_pool2d("ceil", MaxPool2d((2, 2), (2, 2), ceil_mode=True), normal((1, 7, 5, 2))),
    max_pool2d(
        "ceil drops a window in the padding",
        MaxPool2d((2, 2), (2, 2), (1, 1, 1, 1), ceil_mode=True),
        normal((1, 5, 6, 2)),
    ),
    max_pool2d("ceil, stride above kernel", MaxPool2d((1, 2), (3, 4), ceil_mode=True), normal((1, 8, 9, 1))),
    max_pool2d("padding on one side", MaxPool2d((3, 3), (2, 2), (0, 1, 0, 1)), normal((1, 8, 8, 2))),
    max_pool2d("whole image", MaxPool2d((5, 7), (5, 7)), normal((1, 5, 7, 4))),
    max_pool2d("nan and infinity", MaxPool2d((2, 2), (1, 1)), spoiled((1, 9, 9, 2))),
    max_pool2d(
        "all below zero with padding",
        MaxPool2d((2, 2), (2, 2), (1, 1, 1, 1)),
        lambda rng: (-1 - rng.random((1, 4, 4, 2), "float32"),),
    ),
)

AVG_POOL2D = (
    avg_pool2d("one by one", AvgPool2d((1, 1), (1, 1)), normal((1, 1, 1, 1))),
    avg_pool2d("halves", AvgPool2d((2, 2), (2, 2)), normal((2, 8, 6, 3))),
    avg_pool2d("with rest", AvgPool2d((3, 2), (3, 2)), normal((1, 7, 5, 3))),
    avg_pool2d("padding counts", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1)), normal((1, 8, 7, 2))),
    avg_pool2d(
        "padding does not count", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=False), normal((1, 8, 7, 2))
    ),
    avg_pool2d("ceil", AvgPool2d((3, 2), (2, 3), ceil_mode=True), normal((1, 8, 9, 2))),
    avg_pool2d("ceil, padding counts", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), ceil_mode=True), normal((1, 6, 8, 2))),
    avg_pool2d(
        "ceil, padding does not count", AvgPool2d((4, 3), (3, 2), (2, 2, 1, 1), True, False), normal((1, 7, 6, 2))
    ),
    avg_pool2d("divisor", AvgPool2d((3, 3), (2, 2), (1, 1, 1, 1), divisor=5), normal((1, 7, 7, 2))),
    avg_pool2d("stride above kernel", AvgPool2d((2, 1), (3, 4), ceil_mode=True), normal((1, 9, 10, 2))),
    avg_pool2d("padding on one side", AvgPool2d((2, 2), (1, 1), (0, 1, 1, 0)), normal((1, 5, 5, 2))),
    avg_pool2d("global", AvgPool2d((7, 5), (1, 1)), normal((1, 7, 5, 8))),
    avg_pool2d("nan and infinity", AvgPool2d((2, 2), (1, 1)), spoiled((1, 9, 9, 2))),
)

MEAN = (
    mean("last", (1,), False, normal((3, 7))),
    mean("first, kept", (0,), True, normal((5, 3))),
    mean("middle", (1, 2), False, normal((2, 4, 5, 6))),
    mean("middle, kept", (1, 2), True, normal((2, 4, 5, 6))),
    mean("all", (0, 1, 2), False, normal((2, 3, 4))),
    mean("apart but for ones", (0, 2), False, normal((3, 1, 4, 2))),
    mean("nothing but ones", (1,), False, normal((3, 1, 2))),
    mean("unordered axes", (2, 1), False, normal((2, 4, 5))),
    mean("long", (0,), False, lambda rng: (rng.random(3000, "float32") * 2 - 1,)),
    mean("nan and infinity", (1,), False, spoiled((8, 5))),
)

SOFTMAX = (
    softmax("one", 0, normal((1,))),
    softmax("ten", 1, normal((1, 10))),
    softmax("first axis", 0, normal((7, 3))),
    softmax("middle axis", 1, normal((2, 5, 3))),
    softmax("large", 1, lambda rng: (rng.standard_normal((4, 33)).astype("float32") * 100,)),
    softmax("wide range", 0, values([-1e38, 0.0, -80.0, -87.5, -90.0, -104.0, 1.0])),
    softmax("far below zero", 1, lambda rng: (rng.standard_normal((2, 9)).astype("float32") - 500,)),
    softmax("one minus infinity", 0, values([0.5, -inf, 1.0])),
    softmax("all minus infinity", 1, values([[-inf, -inf], [0.0, -inf]])),
    softmax("plus infinity", 1, values([[0.0, inf, 1.0], [1.0, 2.0, 3.0]])),
    softmax("nan", 1, values([[0.0, nan, 1.0], [1.0, 2.0, 3.0]])),
)

SPECIAL = [
    0.0,
    -0.0,
    1e-45,
    -1e-40,
    1e-38,
    1e-20,
    1e-4,
    0.1,
    0.5,
    1.0,
    -1.0,
    3.0,
    8.9,
    9.1,
    -20.0,
    87.0,
    -87.0,
    89.0,
    -89.0,
]
SPECIAL += [-88.0, 3e38, -3e38, inf, -inf, nan]

ELEMENTWISE = (
    unary("special values", Clamp(-1.0, 6.0), values(SPECIAL)),
    unary("one side", Clamp(0.0, inf), spoiled((3, 4, 5))),
    unary("no room", Clamp(2.0, -2.0), normal((5,))),
    unary("special values", Tanh(), values(SPECIAL)),
    unary("scalar", Tanh(), normal(())),
    unary("many", Tanh(), lambda rng: (rng.standard_normal((20, 50)).astype("float32") * 4,)),
    unary("special values", Sigmoid(), values(SPECIAL)),
    unary("many", Sigmoid(), lambda rng: (rng.standard_normal((20, 50)).astype("float32") * 20,)),
    binary("same shape", Add(), normal((2, 3, 4), (2, 3, 4))),
    binary("scalar", Add(), normal((2, 3), ())),
    binary("scalars", Add(), normal((), ())),
    binary("last dimension", Add(), normal((2, 3, 4), (4,))),
    binary("channel", Add(), normal((1, 3, 4, 5), (3, 1, 1))),
    binary("both repeat", Add(), normal((4, 1, 5), (3, 1))),
    binary("four loops", Add(), normal((2, 1, 3, 1), (1, 4, 1, 5))),
    binary("six dimensions", Add(), normal((2, 3, 1, 1, 4, 2), (2, 3, 5, 2, 1, 1))),
    binary("relu", Add(lo=0.0), normal((3, 5), (3, 5))),
    binary("nan and infinity", Add(lo=-1.0, hi=1.0), spoiled((4, 5), (4, 5))),
    binary("infinities that cancel", Add(), values([inf, inf, 1.0], [-inf, inf, nan])),
    binary("overflow", Add(), values([3e38, -3e38], [3e38, -3e38])),
    binary("same shape", Mul(), normal((2, 3, 4), (2, 3, 4))),
    binary("gate per channel", Mul(), normal((1, 4, 5, 6), (1, 1, 1, 6))),
    binary("gate per place", Mul(hi=1.0), normal((1, 4, 5, 6), (1, 4, 5, 1))),
    binary("zero times infinity", Mul(), values([0.0, -0.0, inf, 1e-30], [inf, 2.0, inf, 1e-30])),
)  # fmt: skip

LAYOUT = (
    permute((3, 4), (1, 0)),
    permute((5,), (0,)),
    permute((), ()),
    permute((1, 4, 5, 3), (0, 3, 1, 2)),
    permute((2, 3, 4, 5), (0, 2, 3, 1)),
    permute((2, 1, 3), (1, 2, 0)),
    permute((2, 3, 4, 2, 3, 2), (5, 4, 3, 2, 1, 0)),
    permute((2, 2, 2, 2, 2, 2), (1, 0, 3, 2, 5, 4)),
    permute((2, 3, 1, 2, 2, 2, 2), (6, 1, 2, 0, 3, 4, 5)),
    reshape((2, 3, 4), (4, 6)),
    reshape((1,), ()),
    pad("none", Pad(((0, 0),), 1.0), (4,)),
    pad("image", Pad(((0, 0), (1, 2), (3, 0), (0, 0)), 0.0), (2, 3, 4, 2)),
    pad("every side", Pad(((1, 0), (2, 1), (1, 2), (1, 1)), -inf), (2, 3, 2, 2)),
    pad("crop", Pad(((-1, 2), (1, -2)), 0.5), (4, 5)),
    pad("crop all", Pad(((-1, -1), (-1, 0)), 0.5), (3, 2)),
    pad("six dimensions", Pad(((0, 0), (0, 0), (1, 1), (0, 0), (1, 0), (0, 0)), nan), (2, 1, 2, 3, 1, 2)),
)


def slice_(axis: int, start: int, stop: int, step: int, shape: Shape, dtype: str = "float32") -> Case:
    part = (slice(None),) * axis + (slice(start, stop, step),)
    name = f"slice {dtype} {shape} axis {axis} {start}:{stop}:{step}"
    return Case(name, Slice(axis, start, stop, step), counted(dtype, shape), lambda x: x[part])


def cat(axis: int, *shapes: Shape, dtype: str = "float32") -> Case:
    name = f"cat {dtype} axis {axis} {' '.join(map(str, shapes))}"
    return Case(name, Cat(axis), counted(dtype, *shapes), lambda *xs: torch.cat(xs, axis))


MOVE = (
    slice_(0, 1, 3, 1, (4, 5)),  # a view
    slice_(1, 1, 4, 1, (3, 5, 2)),
    slice_(1, 0, 5, 2, (3, 5, 2)),
    slice_(2, 1, 7, 3, (2, 3, 8)),
    slice_(0, 2, 2, 1, (4, 5)),  # nothing
    slice_(1, 1, 2, 1, (1, 3, 5), "int64"),
    slice_(1, 1, 4, 1, (3, 5), "bool"),
    slice_(0, 1, 3, 1, (4, 3), "int8"),  # would be a view that is not word-aligned
    slice_(1, 1, 3, 1, (2, 3), "int32"),
    cat(0, (2, 3), (1, 3), (4, 3)),
    cat(1, (2, 3), (2, 1)),
    cat(2, (2, 2, 3), (2, 2, 1), (2, 2, 2)),
    cat(0, (3,), (0,), (2,)),
    cat(0, (3,), (2,), dtype="bool"),
    cat(1, (2, 3), (2, 2), dtype="int64"),
    Case("copy", Copy(), normal((3, 4)), lambda x: x.clone()),
    Case("copy int32", Copy(), counted("int32", (5,)), lambda x: x.clone()),
)

TABLE: tuple[Case, ...] = (
    *LINEAR,
    *CONV2D,
    *MAX_POOL2D,
    *AVG_POOL2D,
    *MEAN,
    *SOFTMAX,
    *ELEMENTWISE,
    *LAYOUT,
    *MOVE,
)

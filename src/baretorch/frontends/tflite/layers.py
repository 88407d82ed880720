"""Rows of the TFLite table: layers with weights, pools and resampling."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import known_value
from baretorch.frontends.tflite import sixteen
from baretorch.frontends.tflite.call import Field, TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow
from baretorch.frontends.windows import same_padding
from baretorch.ir.graph import Quant
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.functions import Sqrt
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.index import IndexSelect
from baretorch.ops.layout import Expand
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d

PADDING = Field(0, "b")  # 0 is SAME, 1 VALID
STRIDE_W, STRIDE_H = Field(1), Field(2)
CONV_DILATION = (Field(5, default=1), Field(4, default=1))
DEPTHWISE_DILATION = (Field(6, default=1), Field(5, default=1))
FILTER_W, FILTER_H = Field(3), Field(4)
WEIGHTS_FORMAT = Field(1, "b")
ADJ_X, ADJ_Y = Field(0, "B"), Field(1, "B")


def conv_2d(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a convolution. The weight is [O, KH, KW, C / groups], as in Baretorch."""
    x, weight = call.x(0), call.x(1)
    channels, depth = _image(g, call, x)[3], _image(g, call, weight)[3]
    if depth == 0 or channels % depth:
        raise CompileError(f"{call.name}: the weight does not fit the input")
    return _conv(g, call, weight, (call.option(CONV_DILATION[0]), call.option(CONV_DILATION[1])), channels // depth, 3)


def depthwise_conv_2d(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a depthwise convolution. The weight is [1, KH, KW, C * multiplier]."""
    x, weight = call.x(0), call.x(1)
    channels = _image(g, call, x)[3]
    if _image(g, call, weight)[0] != 1:
        raise CompileError(f"{call.name}: the weight does not fit the input")
    dilation = (call.option(DEPTHWISE_DILATION[0]), call.option(DEPTHWISE_DILATION[1]))
    return _conv(g, call, permuted(g, weight, (3, 1, 2, 0)), dilation, channels, 4)


def _conv(g: TfliteLowering, call: TfliteCall, weight: str, dilation: Pair, groups: int, activation: int) -> str:
    stride = _stride(call)
    around = _around(call, g.shape(call.x())[1:3], g.shape(weight)[1:3], stride, dilation)
    op = Conv2d(stride, around, dilation, groups, *call.limits(activation))
    return g.b.add(op, *symmetric(g, call.x(), weight), *_bias(g, call, 2))


def symmetric(g: TfliteLowering, x: str, weight: str) -> tuple[str, str]:
    """Return the layer's input and weight [O, ..., I] without the zero point of older uint8 models. A number minus the
    zero point may not fit into int8; then it is a sum of two that do, and the input is used twice."""
    t = g[weight]
    if t.data is not None and t.quant is not None and g[x].quant is None:
        g.hybrid.append(g.b.origin.path)
        return x, g.b.const(weight, t.data)
    if t.data is None or t.quant is None or not any(t.quant.zero_point):
        return x, weight
    if t.quant.axis is not None:
        raise CompileError("a weight with a zero point for each channel is not supported", have=str(t))
    scale, bare = t.quant.scale[0], Quant(t.quant.scale, (0,))
    stored = np.rint(t.data.astype(np.float64) / scale)
    if stored.min(initial=0) >= -128 and stored.max(initial=0) <= 127:
        return x, g.b.const(weight, t.data, bare)
    first = np.clip(stored, -127, 127)
    halves = np.stack([first, stored - first], axis=-1).reshape(*stored.shape[:-1], -1) * scale
    shape = g.shape(x)
    twice = g.b.add(Expand((*shape, 2)), g.reshape(x, (*shape, 1)))
    return g.reshape(twice, (*shape[:-1], 2 * shape[-1])), g.b.const(weight, halves.astype(np.float32), bare)


def transpose_conv(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a transposed convolution. Inputs are the output's shape, which the file also states, the weight [O, KH, KW,
    C], x, and perhaps a bias."""
    weight, x = call.x(1), call.x(2)
    stride, padding = _stride(call), []
    sizes = zip(_image(g, call, x)[1:3], _image(g, call, weight)[1:3], stride, call.y.shape[1:3], strict=True)
    for size, kernel, step, out in sizes:
        over = (size - 1) * step + kernel - out
        before = max(over, 0) // 2 if call.option(PADDING) == 0 else 0
        padding += [before, over - before]
    op = ConvTranspose2d(stride, (padding[0], padding[1], padding[2], padding[3]), (1, 1), 1, *call.limits(3))
    return g.b.add(op, *symmetric(g, x, weight), *_bias(g, call, 3, of=2))


def fully_connected(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a linear layer. x is read as rows with as many numbers as the weight [O, I] has columns."""
    if call.option(WEIGHTS_FORMAT):
        raise CompileError("FULLY_CONNECTED: shuffled weights are not supported", need="weights_format DEFAULT")
    x, weight, limits = call.x(0), call.x(1), call.limits(0)
    if len(g.shape(weight)) != 2 or not g.shape(weight)[1]:
        raise CompileError(f"{call.name}: the weight has no rows and columns")
    rows = g.reshape(x, (prod(g.shape(x)) // g.shape(weight)[1], g.shape(weight)[1]))
    if known_value(g, weight) is not None:
        y = g.b.add(Linear(*limits), *symmetric(g, rows, weight), *_bias(g, call, 2))
    else:
        y = g.b.add(Matmul(), rows, g.permute(weight, (1, 0)))
        for bias in _bias(g, call, 2):
            y = g.b.add(Add(), y, bias)
        y = g.limit(y, limits, call.y)
    return g.reshape(y, call.y.shape)


def batch_matmul(g: TfliteLowering, call: TfliteCall) -> str:
    a, b = (
        permuted(g, x, (*range(len(g.shape(x)) - 2), len(g.shape(x)) - 1, len(g.shape(x)) - 2))
        if call.option(adj)
        else x
        for x, adj in ((call.x(0), ADJ_X), (call.x(1), ADJ_Y))
    )
    return g.b.add(Matmul(), a, b)


def average_pool(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower an average, which does not count padding."""
    kernel, stride, around = _window(g, call)
    y = g.b.add(AvgPool2d(kernel, stride, around, count_include_pad=False), call.x())
    return g.limit(y, call.limits(5), call.y)


def pool_of_sixteen(pool: Callable[..., str | None]) -> Callable[[TfliteLowering, TfliteCall], str | None]:
    return lambda g, call: pool(g, call, *_window(g, call))


def max_pool(g: TfliteLowering, call: TfliteCall) -> str:
    return g.limit(g.b.add(MaxPool2d(*_window(g, call)), call.x()), call.limits(5), call.y)


def l2_pool(g: TfliteLowering, call: TfliteCall) -> str:
    kernel, stride, around = _window(g, call)
    mean = g.b.add(AvgPool2d(kernel, stride, around, count_include_pad=False), g.b.add(Mul(), call.x(), call.x()))
    return g.limit(g.b.add(Sqrt(), mean), call.limits(5), call.y)


def resize_bilinear(g: TfliteLowering, call: TfliteCall) -> str:
    aligned, centers = call.option(Field(2, "B")), call.option(Field(3, "B"))
    before, size = _resized_sizes(g, call)
    steps = _steps(before, size, bool(aligned))
    return g.b.add(UpsampleBilinear2d(size, steps, align_corners=not centers), call.x())


def resize_nearest(g: TfliteLowering, call: TfliteCall) -> str:
    aligned, centers = call.option(Field(0, "B")), call.option(Field(1, "B"))
    before, size = _resized_sizes(g, call)
    steps = _steps(before, size, bool(aligned))
    if not aligned:
        return g.b.add(UpsampleNearest2d(size, steps, exact=bool(centers)), call.x())
    y = call.x()
    for axis, (n, step, last) in enumerate(zip(size, steps, before, strict=True), 1):
        place = (np.arange(n, dtype=np.float32) + np.float32(0.5 if centers else 0)) * np.float32(step)
        at = np.floor(place.astype(np.float64) + 0.5).clip(0, last - 1).astype(np.int32)
        y = g.b.add(IndexSelect(axis), y, g.b.const("rows", at))
    return y


def _resized_sizes(g: TfliteLowering, call: TfliteCall) -> tuple[Pair, Pair]:
    _, h, w, _ = _image(g, call, call.x())
    sizes = g.ints(call.x(1), f"the size that {call.name} makes")
    if min(sizes, default=0) < 1 or sizes != call.y.shape[1:3]:  # nothing is computed for another size
        raise CompileError(f"{call.name}: {list(sizes[:4])} is not the size of its result")
    return (h, w), (sizes[0], sizes[1])


def _steps(before: Pair, size: Pair, aligned: bool) -> tuple[float, float]:
    """Return the distance between outputs, in inputs: computed in float32, as in LiteRT."""

    def step(have: int, want: int) -> float:
        ends = aligned and want > 1
        return float(np.float32(have - 1) / np.float32(want - 1) if ends else np.float32(have) / np.float32(want))

    return step(before[0], size[0]), step(before[1], size[1])


def permuted(g: TfliteLowering, x: str, dims: tuple[int, ...]) -> str:
    """Return x with permuted dimensions; a constant is permuted at once, with its scales."""
    t = g[x]
    if t.data is None:
        return g.permute(x, dims)
    quant = t.quant
    if quant is not None and quant.axis is not None:
        quant = type(quant)(quant.scale, quant.zero_point, dims.index(quant.axis))
    return g.b.const(f"{x}_turned", t.data.transpose(dims), quant)


def _bias(g: TfliteLowering, call: TfliteCall, i: int, of: int = 0) -> tuple[str, ...]:
    """Return the bias. In int8 its unit is the scale of input `of` times that of the weight, whatever scale the file
    states."""
    bias = call.maybe(i)
    if bias is None:
        return ()
    t, x, weight = call.operands[i], call.operands[of], call.operands[1]
    assert t is not None and x is not None and weight is not None
    if t.type not in ("int32", "int64") or t.data is None or x.quant is None or weight.quant is None:
        return (bias,)
    steps = x.quant.scale[0] * np.array(weight.quant.scale)
    return (g.b.const(bias, (t.array() * steps).astype(np.float32)),)


def _image(g: TfliteLowering, call: TfliteCall, x: str) -> tuple[int, int, int, int]:
    shape = g.shape(x)
    if len(shape) != 4:
        raise CompileError(f"{call.name}: {len(shape)} dimensions instead of 4", have=str(g[x]))
    return (shape[0], shape[1], shape[2], shape[3])


def _stride(call: TfliteCall) -> Pair:
    return (call.option(STRIDE_H), call.option(STRIDE_W))


def _window(g: TfliteLowering, call: TfliteCall) -> tuple[Pair, Pair, Padding]:
    kernel, stride = (call.option(FILTER_H), call.option(FILTER_W)), _stride(call)
    _, h, w, _ = _image(g, call, call.x())
    return kernel, stride, _around(call, (h, w), kernel, stride, (1, 1))


def _around(call: TfliteCall, size: tuple[int, ...], kernel: tuple[int, ...], stride: Pair, dilation: Pair) -> Padding:
    """Return SAME's padding for each side, the odd one below and to the right; VALID adds nothing."""
    if min(*stride, *dilation, *kernel) < 1:
        raise CompileError(f"{call.name}: stride {stride}, dilation {dilation} and kernel {kernel} must be positive")
    if call.option(PADDING):
        return (0, 0, 0, 0)
    h, w = same_padding(size, kernel, stride, dilation)
    return (h // 2, h - h // 2, w // 2, w - w // 2)


ROWS: dict[str, TfliteRow] = {
    "CONV_2D": TfliteRow(conv_2d, (Conv2d,)),
    "DEPTHWISE_CONV_2D": TfliteRow(depthwise_conv_2d, (Conv2d,)),
    "TRANSPOSE_CONV": TfliteRow(transpose_conv, (ConvTranspose2d,)),
    "FULLY_CONNECTED": TfliteRow(fully_connected, (Linear, Matmul)),
    "BATCH_MATMUL": TfliteRow(batch_matmul, (Matmul,)),
    "AVERAGE_POOL_2D": TfliteRow(average_pool, (AvgPool2d,), sixteen=pool_of_sixteen(sixteen.average_pool)),
    "MAX_POOL_2D": TfliteRow(max_pool, (MaxPool2d,), sixteen=pool_of_sixteen(sixteen.max_pool)),
    "L2_POOL_2D": TfliteRow(l2_pool, (AvgPool2d, Sqrt)),
    "RESIZE_BILINEAR": TfliteRow(resize_bilinear, (UpsampleBilinear2d,)),
    "RESIZE_NEAREST_NEIGHBOR": TfliteRow(resize_nearest, (UpsampleNearest2d, IndexSelect)),
}

"""Rows of the ONNX table: convolutions, pools, norms."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten import layers
from baretorch.frontends.lowering import Ints, spatial
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.ops.window import Padding


def around(c: Call, size: Ints, kernel: Ints, stride: Ints, dilation: Ints) -> tuple[int, ...]:
    """ONNX's pads: all beginnings, then all ends; or what auto_pad makes of them."""
    auto, dims = c.attribute("auto_pad", "NOTSET"), len(size)
    if auto == "NOTSET":
        return tuple(c.attribute("pads", (0,) * 2 * dims))
    if auto == "VALID":
        return (0,) * 2 * dims
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise CompileError(f"{c.op}: auto_pad {auto!r} is not known")
    begins, ends = [], []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        less, more = total // 2, total - total // 2
        begins.append(less if auto == "SAME_UPPER" else more)
        ends.append(more if auto == "SAME_UPPER" else less)
    return (*begins, *ends)


def sides(pads: Ints, dims: int) -> Padding:
    """(top, bottom, left, right) of ONNX's pads."""
    begins, ends = spatial(tuple(pads[:dims]), dims, 0), spatial(tuple(pads[dims:]), dims, 0)
    return (begins[0], ends[0], begins[1], ends[1])


def convolution(g: OnnxLowering, c: Call) -> str:
    x, weight, bias = c.need(0), c.need(1), c.input(2)
    kernel = g.shape(weight)[2:]
    dims = len(kernel)
    if dims not in (1, 2):
        raise CompileError(f"Conv over {dims} dimensions is not supported", need="1 or 2 dimensions")
    stride, dilation = (tuple(c.attribute(n, (1,) * dims)) for n in ("strides", "dilations"))
    pads = around(c, g.shape(x)[2:], kernel, stride, dilation)
    out, depth = g.shape(weight)[:2]
    image = g.reshape(weight, (out, depth, *spatial(kernel, dims, 1)))
    constants = (g.permute(image, (0, 2, 3, 1)), *((bias,) if bias else ()))
    op = Conv2d(spatial(stride, dims, 1), sides(pads, dims), spatial(dilation, dims, 1), c.attribute("group", 1))
    return g.nhwc(op, x, *constants, dims=dims)


def pool(g: OnnxLowering, c: Call) -> str:
    x = c.need(0)
    kernel = tuple(c.attribute("kernel_shape"))
    dims = len(kernel)
    if dims not in (1, 2):
        raise CompileError(f"{c.op} over {dims} dimensions is not supported", need="1 or 2 dimensions")
    stride, dilation = (tuple(c.attribute(n, (1,) * dims)) for n in ("strides", "dilations"))
    padding = sides(around(c, g.shape(x)[2:], kernel, stride, dilation), dims)
    size, step, reach = (spatial(v, dims, 1) for v in (kernel, stride, dilation))
    ceil = bool(c.attribute("ceil_mode", 0))
    if c.op == "MaxPool":
        return g.nhwc(MaxPool2d(size, step, padding, reach, ceil), x, dims=dims)
    if any(d != 1 for d in dilation):
        raise CompileError("AveragePool with dilations is not supported")
    return g.nhwc(AvgPool2d(size, step, padding, ceil, bool(c.attribute("count_include_pad", 0))), x, dims=dims)


def global_average_pool(g: OnnxLowering, c: Call) -> str:
    x = c.need(0)
    return g.b.add(Mean(tuple(range(2, len(g.shape(x)))), True), x)


def batch_norm(g: OnnxLowering, c: Call) -> str:
    x, scale, bias, mean, var = (c.need(i) for i in range(5))
    training = bool(c.attribute("training_mode", 0))
    return layers.batch_norm(g, x, scale, bias, mean, var, training, 0.0, c.attribute("epsilon", 1e-5))


ROWS: dict[str, Row] = {
    "Conv": Row(convolution),
    "MaxPool": Row(pool),
    "AveragePool": Row(pool),
    "GlobalAveragePool": Row(global_average_pool),
    "BatchNormalization": Row(batch_norm),
}

"""Write a region of int8 operators as TOSA, bit for bit: a row per operator that an NPU supports.

TOSA has one operator for each of Baretorch's, except for the step from accumulator to output, which is RESCALE:

    (acc * multiplier + 2^(shift - 1)) >> shift

With Baretorch's multiplier and 32 minus its shift, that is Baretorch's rule, exactly (docs/arithmetic.md). Other
operators that round are composed of int32 sums and products, which do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Op, Shape, Tensor
from baretorch.npu.accelerators import Family
from baretorch.npu.region import EXACT, NotTaken, RegionValues, sizes
from baretorch.npu.softmax import LONGEST_ROW, softmax
from baretorch.npu.tosa import PROPAGATE, Operator, TosaBlock, TosaKind, TosaValue
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.helpers.kernel import data_of
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import QAdd, QMul, QSquaredDifference
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qmatmul import QMatmul
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.int8.qsoftmax import QSoftmax
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape
from baretorch.ops.move import Cat, Slice
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.upsample import UpsampleNearest2d

LARGEST_WINDOW = 64  # along a side, of the NPU's convolutions
MOST_GROUPS = 16  # each is a convolution of its own


Row: TypeAlias = Callable[[RegionValues, Any, tuple[Tensor, ...], Tensor], TosaValue]


def to_tosa(graph: Graph, family: Family | None = None) -> bytes:
    """Return a TOSA file that computes the region, with its inputs and outputs in this order, for accelerators of this
    family, or for all."""
    return write_region(graph, family).block.file()


def write_region(graph: Graph, family: Family | None = None, block: TosaBlock | None = None) -> RegionValues:
    """Lower the region, and return it with the names of its tensors in TOSA; `block` may have other operators
    already."""
    region = RegionValues(graph, block or TosaBlock(), scaled_sums=family is Family.U85)
    for t in graph.of(graph.inputs):
        region.values[t.name] = region.block.input(t.shape, TosaKind.INT8)
    for node in graph.nodes:
        write_node(region, node)
    for name in graph.outputs:
        region.block.outputs.append(region.values[name].name)
    return region


def write_node(region: RegionValues, node: Node) -> None:
    """Add what makes a node to the region's block."""
    inputs, (y,) = region.graph.of(node.inputs), region.graph.of(node.outputs)
    row = TOSA_ROWS.get(type(node.op))
    if row is None:
        raise NotTaken(f"no NPU row for {node.op.name}")
    made = row(region, node.op, inputs, y)
    assert made.shape == y.shape, f"{node.op.name} makes {made.shape}, not {y.shape}"
    region.values[y.name] = made


def why_not(graph: Graph, node: Node) -> str | None:
    """Why this operator is not one for an NPU, as far as we know without asking Vela; None if it is."""
    row, tensors = TOSA_ROWS.get(type(node.op)), graph.of((*node.inputs, *node.outputs))
    varying = [t for t in tensors if t.data is None]
    others = [t.dtype.label for t in varying if t.dtype is not DType.INT8]
    if others:
        return f"it is {others[0]}"
    if row is None:
        return f"TOSA has no operator for what {node.op.name} computes"
    if any(len(t.shape) > 4 or not t.count for t in varying):
        return "it has more than four dimensions" if any(len(t.shape) > 4 for t in varying) else "it is empty"
    trial = RegionValues(graph)
    for t in graph.of(node.inputs):
        if t.data is None:
            trial.values[t.name] = trial.block.input(t.shape, TosaKind.INT8)
    try:
        write_node(trial, node)
    except NotTaken as refusal:
        return str(refusal)
    return None


def _constants(inputs: Sequence[Tensor]) -> tuple[Array, Array, Array]:
    """Return the weight, bias and multiplier of a layer."""
    if any(t.data is None for t in inputs[1:]):
        raise NotTaken("its weight is computed")
    return data_of(inputs, 1), data_of(inputs, 2), data_of(inputs, 3)


def _far(zero: int) -> int:
    """Return the largest distance of an int8 value from its zero point."""
    return max(127 - zero, zero + 128)


def _most(weight: Array, bias: Array, zero: int) -> int:
    """Return an upper bound of the accumulators: over-estimated for transposed kernels with strides."""
    sums = np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(axis=1)
    return int((sums * _far(zero) + np.abs(bias.astype(np.int64))).max())


def _conv2d(region: RegionValues, op: QConv2d, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    weight, bias, multiplier = _constants(inputs)
    out, kernel_h, kernel_w, depth = weight.shape
    unfolded = bias.astype(np.int64) + op.x_zero * weight.reshape(out, -1).astype(np.int64).sum(axis=1)
    kernel = (kernel_h, kernel_w)
    x, pads = region.windows(region.value(inputs[0]), kernel, op.stride, op.padding, op.dilation)
    h, w = sizes(x.shape, kernel, op.stride, pads, op.dilation)
    fields = (pads, op.stride, op.dilation)
    most = _most(weight, unfolded, op.x_zero)
    if op.groups == x.shape[3] and depth == 1 and op.groups > 1:
        taps = weight.reshape(op.groups, -1, kernel_h, kernel_w).transpose(2, 3, 0, 1)
        shape = (x.shape[0], h, w, out)
        acc = region.convolve(Operator.DEPTHWISE_CONV2D, x, taps, unfolded, op.x_zero, shape, fields)
        made = region.requantize(acc, multiplier, op.shift, op.zero, op.lo, op.hi, most)
    else:
        if op.groups > MOST_GROUPS:
            raise NotTaken(f"it has {op.groups} groups, and more than {MOST_GROUPS} are too many convolutions")
        each, parts = out // op.groups, []
        shape = (x.shape[0], h, w, each)
        for g in range(op.groups):
            rows = slice(g * each, (g + 1) * each)
            part = region.slice(x, 3, g * depth, (g + 1) * depth)
            acc = region.convolve(Operator.CONV2D, part, weight[rows], unfolded[rows], op.x_zero, shape, fields)
            parts.append(region.requantize(acc, multiplier[rows], op.shift, op.zero, op.lo, op.hi, most))
        made = region.join(parts, 3)  # in int8: Vela 5.2.0 scales accumulators that are joined wrongly
    return made if op.pool == (1, 1) else region.max_pool(made, op.pool, op.pool, (0, 0, 0, 0))


def _linear(region: RegionValues, op: QLinear, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    weight, bias, multiplier = _constants(inputs)
    out, in_ = weight.shape
    x = region.value(inputs[0])
    rows = prod(x.shape[:-1])
    image = region.reshape(x, (1, rows, 1, in_))
    fields = ((0, 0, 0, 0), (1, 1), (1, 1))
    shape = (1, rows, 1, out)
    acc = region.convolve(Operator.CONV2D, image, weight.reshape(out, 1, 1, in_), bias, 0, shape, fields)
    most = _most(weight, bias, 0)
    return region.reshape(region.requantize(acc, multiplier, op.shift, op.zero, op.lo, op.hi, most), y.shape)


def _conv_transpose2d(region: RegionValues, op: QConvTranspose2d, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    weight, bias, multiplier = _constants(inputs)
    if op.groups > 1 or op.dilation != (1, 1):
        raise NotTaken("TOSA's transposed convolution has neither groups nor dilation")
    kernels = (weight.shape[1],) * 2 + (weight.shape[2],) * 2
    if any(p >= k for p, k in zip(op.padding, kernels, strict=True)):
        raise NotTaken("it cuts off more than its kernel")
    pads = tuple(-p for p in op.padding)
    x = region.value(inputs[0])
    acc = region.convolve(Operator.TRANSPOSE_CONV2D, x, weight, bias, op.x_zero, y.shape, (pads, op.stride))
    return region.requantize(acc, multiplier, op.shift, op.zero, op.lo, op.hi, _most(weight, bias, op.x_zero))


def _matmul(region: RegionValues, op: QMatmul, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    a, b = (
        region.transpose(region.value(t), tuple(dims) or tuple(range(len(t.shape))))
        for t, dims in zip(inputs, (op.a_dims, op.b_dims), strict=True)
    )
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[:-2] != b.shape[:-2]:
        raise NotTaken("its operands have different batches")
    batch, m, k, n = prod(a.shape[:-2]), a.shape[-2], a.shape[-1], b.shape[-1]
    zeros = (region.block.const(np.array([z]), TosaKind.INT8) for z in (op.a_zero, op.b_zero))
    flat = (region.reshape(a, (batch, m, k)), region.reshape(b, (batch, k, n)))
    acc = region.block.add(Operator.MATMUL, (batch, m, n), TosaKind.INT32, *flat, *zeros)
    most = k * _far(op.a_zero) * _far(op.b_zero)
    made = region.requantize(acc, np.array(op.multiplier), op.shift, op.zero, op.lo, op.hi, most)
    whole = region.reshape(made, (*a.shape[:-2], m, n))
    return region.transpose(whole, tuple(op.y_dims) or tuple(range(len(whole.shape))))


def _equal_ranks(region: RegionValues, inputs: Sequence[Tensor], rank: int) -> list[TosaValue]:
    """Return the inputs with as many dimensions as the result: TOSA does not broadcast missing ones."""
    found = [region.value(t) for t in inputs]
    return [region.reshape(x, (*(1,) * (rank - len(x.shape)), *x.shape)) for x in found]


def _add(region: RegionValues, op: QAdd, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    """Lower a sum. Known zero points are subtracted from the operands; the rest of the offset is added afterwards."""
    if op.a_factor <= 0:
        raise NotTaken("it subtracts from a negative number")
    zeros = [0 if t.quant is None else t.quant.zero_point[0] for t in (*inputs, y)]
    known = (zeros[2] << op.shift) + (1 << (op.shift - 1)) - zeros[0] * op.a_factor - zeros[1] * op.b_factor
    a, b = _equal_ranks(region, inputs, len(y.shape))
    terms = (_times(region, a, zeros[0], op.a_factor), _times(region, b, zeros[1], abs(op.b_factor)))
    total = region.block.add(Operator.ADD if op.b_factor >= 0 else Operator.SUB, y.shape, TosaKind.INT32, *terms)
    if op.offset != known:
        rest = region.block.const(np.full((1,) * len(y.shape), op.offset - known), TosaKind.INT32)
        total = region.block.add(Operator.ADD, y.shape, TosaKind.INT32, total, rest)
    made = region.rescale(total, TosaKind.INT8, [1 << EXACT], [op.shift + EXACT], zero=zeros[2])
    return region.clamp(made, op.lo, op.hi)


def _times(region: RegionValues, x: TosaValue, zero: int, factor: int) -> TosaValue:
    """Compute (x - zero) * factor as int32, for a sum. RESCALE is only used where that is safe: Vela 5.2.0 makes it a
    part of the sum, and sums of a U55 or U65 then shift one operand by 19 instead of multiplying it by its factor."""
    if region.scaled_sums:
        return region.wide(x, zero, factor)
    by = region.block.const(np.full((1,) * len(x.shape), factor), TosaKind.INT32)
    return _product(region, region.wide(_copy_concatenation(region, x), zero), by, x.shape)


def _copy_concatenation(region: RegionValues, x: TosaValue) -> TosaValue:
    """Copy a concatenation through a table that changes nothing: on a U55 or U65, Vela 5.2.0 lets a product that
    follows read past its end."""
    if region.block.maker(x) is not Operator.CONCAT:
        return x
    same = region.block.const(np.arange(-128, 128), TosaKind.INT8)
    return region.block.add(Operator.TABLE, x.shape, TosaKind.INT8, x, same)


def _mul(region: RegionValues, op: QMul, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    a, b = _equal_ranks(region, inputs, len(y.shape))
    acc = _product(region, region.wide(a, op.a_zero), region.wide(b, op.b_zero), y.shape)
    most = _far(op.a_zero) * _far(op.b_zero)
    return region.requantize(acc, np.array(op.multiplier), op.shift, op.zero, op.lo, op.hi, most)


def _product(region: RegionValues, a: TosaValue, b: TosaValue, shape: Shape) -> TosaValue:
    return region.block.add(Operator.MUL, shape, TosaKind.INT32, a, b, region.block.const(np.array([0]), TosaKind.INT8))


def _squared_difference(
    region: RegionValues, op: QSquaredDifference, inputs: tuple[Tensor, ...], y: Tensor
) -> TosaValue:
    a, b = _equal_ranks(region, inputs, len(y.shape))
    terms = (region.wide(a, op.a_zero, op.a_factor), region.wide(b, op.b_zero, op.b_factor))
    apart = region.block.add(Operator.SUB, y.shape, TosaKind.INT32, *terms)
    steps = region.rescale(apart, TosaKind.INT32, [1 << EXACT], [7 + EXACT])
    acc = _product(region, steps, steps, y.shape)
    most = ((_far(op.a_zero) * op.a_factor + _far(op.b_zero) * op.b_factor >> 7) + 1) ** 2
    return region.requantize(acc, np.array(op.multiplier), 0, op.zero, op.lo, op.hi, most)


def _extreme(operator: Operator) -> Row:
    """Compute the minimum or maximum of two tensors, which TOSA has for int32 only."""

    def row(region: RegionValues, op: Op, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
        a, b = _equal_ranks(region, inputs, len(y.shape))
        chosen = region.block.add(
            operator, y.shape, TosaKind.INT32, region.wide(a, 0), region.wide(b, 0), fields=(PROPAGATE,)
        )
        return region.rescale(chosen, TosaKind.INT8, [1 << EXACT], [EXACT])

    return row


def _max_pool2d(region: RegionValues, op: MaxPool2d, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    if any(pad >= size for pad, size in zip(op.padding, (op.kernel[0],) * 2 + (op.kernel[1],) * 2, strict=True)):
        raise NotTaken("its padding is not smaller than its windows")
    if op.dilation != (1, 1):
        raise NotTaken("TOSA's max pool has no dilation")
    x = region.value(inputs[0])
    top, bottom, left, right = op.padding
    # With ceil_mode the last windows reach out of the image: that is padding too.
    reach = [(n - 1) * s + k for n, s, k in zip(y.shape[1:3], op.stride, op.kernel, strict=True)]
    bottom, right = max(bottom, reach[0] - top - x.shape[1]), max(right, reach[1] - left - x.shape[2])
    return region.max_pool(x, op.kernel, op.stride, (top, bottom, left, right))


def _avg_pool2d(region: RegionValues, op: QAvgPool2d, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    """Lower to a depthwise convolution with ones, because TOSA's own average rounds differently."""
    x = region.value(inputs[0])
    whole = op.kernel == x.shape[1:3] and not any(op.padding)
    if max(op.kernel) > LARGEST_WINDOW:
        if not whole:
            raise NotTaken(f"its window has more than {LARGEST_WINDOW} rows or columns")
        flat = region.wide(region.reshape(x, (x.shape[0], prod(op.kernel), x.shape[3])), op.x_zero)
        acc = region.block.add(Operator.REDUCE_SUM, (x.shape[0], 1, x.shape[3]), TosaKind.INT32, flat, fields=(1,))
    else:
        stride = (1, 1) if whole else op.stride
        x, pads = region.windows(x, op.kernel, stride, op.padding, (1, 1))
        ones = np.ones((*op.kernel, x.shape[3], 1))
        none = np.zeros(x.shape[3])
        fields = (pads, stride, (1, 1))
        acc = region.convolve(Operator.DEPTHWISE_CONV2D, x, ones, none, op.x_zero, y.shape, fields)
    most = prod(op.kernel) * _far(op.x_zero)
    made = region.requantize(acc, np.array(op.multiplier), op.shift, op.zero, -128, 127, most)
    return region.reshape(made, y.shape)


def _lookup(region: RegionValues, op: Lookup, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    if inputs[1].data is None:
        raise NotTaken("its table is computed")
    table = region.block.const(inputs[1].data, TosaKind.INT8)
    return region.block.add(Operator.TABLE, y.shape, TosaKind.INT8, region.value(inputs[0]), table)


def _softmax(region: RegionValues, op: QSoftmax, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    if y.shape[-1] > LONGEST_ROW:
        raise NotTaken(f"it has more than {LONGEST_ROW:,} numbers in a row")
    return softmax(region, op, region.value(inputs[0]))


def _reshape(region: RegionValues, op: Reshape, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    return region.reshape(region.value(inputs[0]), y.shape)


def _permute(region: RegionValues, op: Permute, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    return region.transpose(region.value(inputs[0]), op.dims)


def _cat(region: RegionValues, op: Cat, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    return region.join([region.value(t) for t in inputs], op.axis)


def _slice(region: RegionValues, op: Slice, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    if op.step != 1:
        raise NotTaken(f"TOSA's slice takes no step of {op.step}")
    return region.slice(region.value(inputs[0]), op.axis, op.start, op.stop)


def _pad(region: RegionValues, op: Pad, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    x = region.value(inputs[0])
    if any(n < 0 for pair in op.padding for n in pair):
        raise NotTaken("it crops")
    fill = region.block.const(np.array([op.value]), TosaKind.INT8)
    counts = tuple(n for pair in op.padding for n in pair)
    return region.block.add(Operator.PAD, y.shape, TosaKind.INT8, x, counts, fill)


def _expand(region: RegionValues, op: Expand, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    (x,) = _equal_ranks(region, inputs, len(y.shape))
    times = tuple(n // m for n, m in zip(y.shape, x.shape, strict=True))
    return region.block.add(Operator.TILE, y.shape, TosaKind.INT8, x, times)


def _flip(region: RegionValues, op: Flip, inputs: tuple[Tensor, ...], y: Tensor) -> TosaValue:
    x = region.value(inputs[0])
    for axis in op.axes:
        x = region.block.add(Operator.REVERSE, x.shape, TosaKind.INT8, x, fields=(axis,))
    return x


def _upsample_nearest2d(
    region: RegionValues, op: UpsampleNearest2d, inputs: tuple[Tensor, ...], y: Tensor
) -> TosaValue:
    """Repeat rows and columns a whole number of times by concatenation, so nothing can round."""
    x = region.value(inputs[0])
    n, h, w, c = x.shape
    tall, wide = op.size[0] // h, op.size[1] // w
    for axis, times in ((0, tall), (1, wide)):
        if op.sources(axis, x.shape[1 + axis]).tolist() != [i // max(times, 1) for i in range(op.size[axis])]:
            raise NotTaken("its rows or columns are not repeated a whole number of times")
    rows = region.reshape(x, (n * h, 1, w * c))
    high = region.reshape(region.join([rows] * tall, 1), (n * h * tall * w, 1, c))
    return region.reshape(region.join([high] * wide, 1), y.shape)


TOSA_ROWS: dict[type[Op], Row] = {
    QConv2d: _conv2d,
    QLinear: _linear,
    QConvTranspose2d: _conv_transpose2d,
    QMatmul: _matmul,
    QAdd: _add,
    QMul: _mul,
    QSquaredDifference: _squared_difference,
    Maximum: _extreme(Operator.MAXIMUM),
    Minimum: _extreme(Operator.MINIMUM),
    MaxPool2d: _max_pool2d,
    QAvgPool2d: _avg_pool2d,
    Lookup: _lookup,
    QSoftmax: _softmax,
    Reshape: _reshape,
    Permute: _permute,
    Cat: _cat,
    Slice: _slice,
    Pad: _pad,
    Expand: _expand,
    Flip: _flip,
    UpsampleNearest2d: _upsample_nearest2d,
}

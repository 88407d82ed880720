"""Rows of the ATen table: the cortex_m operators of ExecuTorch's Cortex-M passes, which already compute in int8.

Their factors are pairs: multiplier * 2^(shift - 31). Here these become multipliers of Baretorch's only rule (see
docs/arithmetic.md), which rounds once where CMSIS-NN rounds twice: a result may differ from ExecuTorch's by one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from math import isfinite, ldexp, prod
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import quant
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import TO_NCHW, TO_NHWC, Build, Ints, Lowering, pair, sides
from baretorch.ir.graph import Array, DType, Quant
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.int8.arithmetic import multipliers
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import QAdd, QDiv, QMul, product_of, quotient_of, sum_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qmatmul import QMatmul
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.int8.qsoftmax import QSoftmax
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.layout import Permute
from baretorch.ops.pool import MaxPool2d

EVERY = np.arange(-128, 128, dtype=np.int8)
INPUT_BITS = 20  # the left shift of a sum's inputs in CMSIS-NN
SOFTMAX_BITS = 26  # fractional bits of the differences in CMSIS-NN's softmax
QUARTER = (1 << 30, -1)  # output multiplier and shift of every sum that ExecuTorch 1.0 wrote


def linear(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None,
    kernel_sum: str | None,
    x_offset: int,
    filter_offset: int,
    y_offset: int,
    factors: Ints,
    shifts: Ints,
    hi: int,
    lo: int,
) -> str:
    """Lower a linear layer. `kernel_sum`, if present, is the bias including the input's zero point."""
    if filter_offset:
        raise CompileError("quantized_linear: weights with a zero point are not supported", have=f"{-filter_offset}")
    w = _int8(g, weight)
    folded = kernel_sum is not None
    added = _bias(g, kernel_sum if folded else bias, w, 0 if folded else x_offset)
    m, shift = multipliers(np.broadcast_to(_factors(factors, shifts), len(w)).tolist())
    constants = (weight, g.b.const("bias", added), g.b.const("multiplier", m))
    return g.b.add(QLinear(_stored(y_offset), shift, _stored(lo), _stored(hi)), x, *constants)


def conv2d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    x_offset: int,
    y_offset: int,
    factors: str,
    shifts: str,
    lo: int,
    hi: int,
    scratch: None = None,
) -> str:
    channels = g.shape(x)[1]
    w = _int8(g, weight)
    if w.ndim != 4 or w.shape[3] == 0 or channels % w.shape[3]:
        raise CompileError("quantized_conv2d: the weight does not fit the input", have=[str(g[x]), str(g[weight])])
    m, shift = _per_channel(g, factors, shifts)
    op = QConv2d(
        _stored(-x_offset),
        _stored(y_offset),
        shift,
        _stored(lo),
        _stored(hi),
        pair(stride),
        sides(pair(padding)),
        pair(dilation),
        channels // w.shape[3],
    )
    return g.nhwc(op, x, weight, g.b.const("bias", _bias(g, bias, w, x_offset)), g.b.const("multiplier", m))


def transpose_conv2d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    x_offset: int,
    y_offset: int,
    factors: str,
    shifts: str,
    lo: int,
    hi: int,
    *scratch: None,
) -> str:
    w = _int8(g, weight)
    if w.ndim != 4 or w.shape[3] != g.shape(x)[1]:
        raise CompileError("quantized_transpose_conv2d: only one group is supported", have=[str(g[x]), str(g[weight])])
    m, shift = _per_channel(g, factors, shifts)
    top, bottom, left, right = sides(pair(padding))
    below, beside = pair(output_padding)
    around = (top, bottom - below, left, right - beside)
    limits = (_stored(lo), _stored(hi))
    op = QConvTranspose2d(_stored(-x_offset), _stored(y_offset), shift, *limits, pair(stride), around, pair(dilation))
    return g.nhwc(op, x, weight, g.b.const("bias", _bias(g, bias, w, 0)), g.b.const("multiplier", m))


def depthwise_conv2d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    depth_multiplier: int,
    *rest: int | str | None,
) -> str:
    """Lower a depthwise convolution; the weight is [1, KH, KW, C]."""
    by_channel = g.b.const(f"{weight}_int8", np.ascontiguousarray(_int8(g, weight).transpose(3, 1, 2, 0)))
    return conv2d(g, x, by_channel, bias, stride, padding, dilation, *rest)  # type: ignore[arg-type]


def avg_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    zero: int,
    factor: int,
    shift: int,
    scratch: None = None,
) -> str:
    if any(padding):
        raise CompileError("quantized_avg_pool2d: padding is not supported", have=f"padding {list(padding)}")
    if ceil_mode and _has_partial_windows(g.shape(x)[-2:], pair(kernel), pair(stride)):
        raise CompileError(
            "quantized_avg_pool2d: ceil_mode is not supported where windows reach beyond the image",
            have=f"{g[x]}, kernel {list(kernel)}, stride {list(stride)}",
            try_="ceil_mode=False, or a size that the windows fill",
        )
    m, left = multipliers([1 / max(prod(pair(kernel)), 1)])
    return g.nhwc(QAvgPool2d(pair(kernel), pair(stride), _stored(zero), int(m[0]), left, _stored(zero)), x)


def _has_partial_windows(sizes: Ints, kernel: Ints, stride: Ints) -> bool:
    """Report whether windows of ceil_mode exceed the image; otherwise they equal those without it."""
    return any(n < k or (n - k) % max(s, 1) for n, k, s in zip(sizes, kernel, stride, strict=True))


def max_pool2d(
    g: Lowering,
    x: str,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    x_zero: int,
    y_zero: int,
    lo: int,
    hi: int,
) -> str:
    if x_zero != y_zero:
        raise CompileError("quantized_max_pool2d: the zero point changes", have=f"{x_zero} and {y_zero}")
    op = MaxPool2d(pair(kernel), pair(stride), sides(pair(padding)), pair(dilation), bool(ceil_mode))
    y = g.nhwc(op, x)
    return y if (lo, hi) == (-128, 127) else _table(g, y, np.clip(EVERY, _stored(lo), _stored(hi)))


def add(
    g: Lowering,
    a: str,
    a_zero: int,
    a_factor: int,
    a_shift: int,
    b: str,
    b_zero: int,
    b_factor: int,
    b_shift: int,
    zero: int,
    factor: int,
    shift: int,
    lo: int,
    hi: int,
) -> str:
    if (factor, shift) == QUARTER:  # ExecuTorch 1.0 negates shifts, and its factors are ratios of scales
        ratios = _factors((a_factor, b_factor), (-a_shift, -b_shift))
    else:
        ratios = _factors((a_factor, b_factor), (a_shift, b_shift)) * _factors((factor,), (shift,)) * (1 << INPUT_BITS)
    made = sum_of(_quant(ratios[0], a_zero), _quant(ratios[1], b_zero), _quant(1.0, zero))
    if made is None:
        raise CompileError("quantized_add: an input's scale is 64 times the output's or more")
    return g.b.add(replace(made, lo=_stored(lo), hi=_stored(hi)), a, b)


def mul(g: Lowering, a: str, a_zero: int, b: str, b_zero: int, zero: int, factor: int, shift: int) -> str:
    """Lower a product. For hardswish, ExecuTorch stores the second factor's +3 in its zero point, which then exceeds
    int8."""
    if not -512 <= min(a_zero, b_zero) <= max(a_zero, b_zero) <= 511:
        raise CompileError("quantized_mul: a zero point is too large", have=f"{a_zero} and {b_zero}")
    ratio = float(_factors((factor,), (shift,))[0])
    made = product_of(Quant((ratio,), (int(a_zero),)), Quant((1.0,), (int(b_zero),)), _quant(1.0, zero))
    return g.b.add(made, a, b)


def div(g: Lowering, a: str, a_zero: int, b: str, b_zero: int, zero: int, scale: float) -> str:
    """Lower a quotient. ExecuTorch defines it as 0 where the divisor is 0."""
    quant.need_scale(scale)
    made = g.b.add(quotient_of(_quant(scale, a_zero), _quant(1.0, b_zero), _quant(1.0, zero)), a, b)
    highest, lowest = (_table(g, b, np.where(b_zero == EVERY, _stored(zero), limit)) for limit in (127, -128))
    return g.b.add(Maximum(), g.b.add(Minimum(), made, highest), lowest)


def batch_matmul(
    g: Lowering, a: str, a_offset: int, b: str, b_offset: int, zero: int, factor: int, shift: int, scratch: None = None
) -> str:
    """Lower a matrix product. The last two dimensions of the right side are swapped, and offsets are negated zero
    points."""
    (m,), left = multipliers(_factors((factor,), (shift,)).tolist())
    op = QMatmul(_stored(-a_offset), _stored(-b_offset), int(m), left, _stored(zero))
    return g.b.add(op, a, g.permute(b, (0, 2, 1)))


def activation(g: Lowering, x: str, table: str) -> str:
    return _table(g, x, _int8(g, table).reshape(-1))


def softmax(g: Lowering, x: str, axis: int, x_zero: int, y_zero: int, factor: int, shift: int, diff_min: int) -> str:
    if y_zero != -128:
        raise CompileError(f"softmax: the zero point {y_zero} is not supported", need="-128, as CMSIS-NN has it")
    last, axis = len(g.shape(x)) - 1, g.axis(x, axis)
    dims = [d for d in range(last + 1) if d != axis] + [axis]
    op = QSoftmax(ldexp(float(_factors((factor,), (shift,))[0]), -SOFTMAX_BITS))
    if axis == last:
        return g.b.add(op, x)
    return g.permute(g.b.add(op, g.permute(x, dims)), [int(d) for d in np.argsort(dims)])


def channels_last(build: Build) -> Build:
    """Return the row of an operator whose images are [N, H, W, C] for PyTorch, too."""

    @wraps(build)
    def lowered(g: Lowering, x: str, *rest: Any) -> str:
        made = build(g, g.permute(x, TO_NCHW), *rest)
        assert isinstance(made, str)
        return g.permute(made, TO_NHWC)

    return lowered


def _table(g: Lowering, x: str, table: Array) -> str:
    return g.b.add(Lookup(), x, g.b.const("table", table.astype(np.int8)))


def _factors(factors: Sequence[int], shifts: Sequence[int]) -> Array:
    """Return multiplier * 2^(shift - 31) for each channel."""
    values = [ldexp(m, s - 31) for m, s in zip(factors, shifts, strict=True)]
    if not all(isfinite(v) and 0 <= v < 1e30 for v in values):
        raise CompileError("a multiplier is negative or huge", have=", ".join(f"{v:g}" for v in values[:4]))
    return np.array(values)


def _per_channel(g: Lowering, factors: str, shifts: str) -> tuple[Array, int]:
    pairs = (g.constant(t, "multipliers and shifts of a convolution").reshape(-1).tolist() for t in (factors, shifts))
    return multipliers(_factors(*pairs).tolist())


def _quant(scale: float, zero: int) -> Quant:
    return Quant((float(scale),), (_stored(zero),))


def _stored(value: int) -> int:
    """Return a zero point or limit, which must be an int8."""
    if not -128 <= value <= 127:
        raise CompileError(f"{value} cannot be a zero point or limit of int8", need="-128 to 127")
    return int(value)


def _int8(g: Lowering, name: str) -> Array:
    data = g.constant(name, "an int8 layer's weight")
    if g[name].dtype is not DType.INT8:
        raise CompileError("an int8 layer's weight is not int8", have=str(g[name]))
    return data


def _bias(g: Lowering, bias: str | None, w: Array, x_offset: int) -> Array:
    """Return one bias per row of the weight, including the input's zero point."""
    given = np.zeros(len(w), np.int64) if bias is None else g.constant(bias, "an int8 layer's bias").astype(np.int64)
    sums = w.reshape(len(w), -1).astype(np.int64).sum(axis=1)
    whole: Array = np.clip(given.reshape(sums.shape) + x_offset * sums, -(2**31), 2**31 - 1)
    return whole.astype(np.int32)


ROWS: dict[str, AtenRow] = {
    "cortex_m::quantize_per_tensor": AtenRow(quant.quantize_per_tensor, (Quantize,)),
    "cortex_m::dequantize_per_tensor": AtenRow(quant.dequantize_per_tensor, (Dequantize,)),
    "cortex_m::quantized_linear": AtenRow(linear, (QLinear,)),
    "cortex_m::quantized_conv2d": AtenRow(conv2d, (QConv2d,)),
    "cortex_m::quantized_depthwise_conv2d": AtenRow(depthwise_conv2d, (QConv2d,)),
    "cortex_m::quantized_transpose_conv2d": AtenRow(transpose_conv2d, (QConvTranspose2d,)),
    "cortex_m::quantized_batch_matmul": AtenRow(batch_matmul, (QMatmul,)),
    "cortex_m::quantized_avg_pool2d": AtenRow(avg_pool2d, (QAvgPool2d,)),
    "cortex_m::quantized_max_pool2d": AtenRow(max_pool2d, (MaxPool2d, Lookup)),
    "cortex_m::quantized_add": AtenRow(add, (QAdd,)),
    "cortex_m::quantized_mul": AtenRow(mul, (QMul,)),
    "cortex_m::quantized_div": AtenRow(div, (QDiv, Lookup, Minimum, Maximum)),
    "cortex_m::quantized_activation": AtenRow(activation, (Lookup,)),
    "cortex_m::maximum": AtenRow(lambda g, a, b: g.b.add(Maximum(), a, b), (Maximum,)),
    "cortex_m::minimum": AtenRow(lambda g, a, b: g.b.add(Minimum(), a, b), (Minimum,)),
    "cortex_m::softmax": AtenRow(softmax, (QSoftmax,)),
    "cortex_m::transpose": AtenRow(lambda g, x, dims: g.permute(x, dims), (Permute,)),
}
IMAGES = ("conv2d", "depthwise_conv2d", "transpose_conv2d", "avg_pool2d", "max_pool2d")
ROWS |= {
    f"cortex_m::quantized_{name}_nhwc": replace(row, build=channels_last(row.build))
    for name in IMAGES
    for row in [ROWS[f"cortex_m::quantized_{name}"]]
}

"""Rows of the ONNX table: operators of quantized files.

A Graph has their float meaning, with Quantize and Dequantize around: QuantizeLinear and DequantizeLinear as they are,
and an operator on integers, such as QLinearConv, as dequantize, the float operator, quantize. A pass makes int8
operators of that. uint8 is int8 with a zero point that is less by 128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.aten.quant import need_scale, real
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import MICROSOFT, OnnxCall, key
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, StoredInt8
from baretorch.ir.graph import Array, DType, Quant
from baretorch.ops.int8.quantize import Dequantize, Quantize

EXACT = 1 << 24  # whole numbers up to here are exact in float32


def quantize_linear(g: OnnxLowering, c: OnnxCall) -> str:
    scale, zero, wanted = _pair(g, c, 1)
    if scale.size != 1:
        raise CompileError("QuantizeLinear: a value that is computed has one scale", have=f"{scale.size} scales")
    named = c.attribute("output_dtype", 0)
    if named not in (0, 2, 3) or wanted not in (None, DType.INT8, DType.UINT8):
        raise CompileError("QuantizeLinear: only int8 and uint8 are supported")
    unsigned = wanted is DType.UINT8 or (zero is None and named in (0, 2))
    return quantize(g, c.need(0), float(scale.reshape(-1)[0]), _zero(zero), unsigned)


def dequantize_linear(g: OnnxLowering, c: OnnxCall) -> str:
    x = c.need(0)
    data = g.known(x)
    scale, zero, _ = _pair(g, c, 1)
    if data is None:
        if scale.size != 1:
            raise CompileError("DequantizeLinear: a value that is computed has one scale", have=f"{scale.size} scales")
        return dequantize(g, x, float(scale.reshape(-1)[0]), _zero(zero))
    axis = c.attribute("axis", 1)
    if c.attribute("block_size", 0):
        return _blocks(g, x, data, scale, zero, c)
    return weight(g, x, scale, zero, g.axis(x, axis) if scale.size > 1 else None)


def quantize(g: OnnxLowering, x: str, scale: float, zero: int, unsigned: bool) -> str:
    """Quantize a float tensor to int8."""
    need_scale(scale)
    offset = 128 if unsigned else 0
    if not -128 <= zero - offset <= 127:
        raise CompileError(f"the zero point {zero} is outside of the stored type")
    stored = g.b.add(Quantize(scale, zero - offset), x)
    _note(g, x, scale, zero - offset)
    g.stored[stored] = StoredInt8(scale, zero, unsigned)
    return stored


def dequantize(g: OnnxLowering, x: str, scale: float, zero: int) -> str:
    """Return the real values of a stored tensor."""
    need_scale(scale)
    t = g[x]
    if t.data is not None:
        return weight(g, x, np.array([scale]), np.array([zero]), None)
    known = g.stored.get(x)
    if known is not None:
        return g.b.add(Dequantize(scale, zero - (128 if known.unsigned else 0)), x)
    if t.dtype is DType.INT8:  # an input
        return _note(g, g.b.add(Dequantize(scale, zero), x), scale, zero)
    if t.dtype is DType.UINT8:  # an input: the same number as int8
        plain = elementwise.mul(g, elementwise.sub(g, cast(g, x, DType.FLOAT32), float(zero)), scale)
        return g.b.add(Dequantize(scale, zero - 128), g.b.add(Quantize(scale, zero - 128), plain))
    if t.dtype is DType.INT32:
        return elementwise.mul(g, elementwise.sub(g, cast(g, x, DType.FLOAT32), float(zero)), scale)
    raise CompileError(f"DequantizeLinear of {t.dtype.label} is not supported", need="int8, uint8 or int32")


def _note(g: OnnxLowering, x: str, scale: float, zero: int) -> str:
    """Annotate a float tensor with its first scale."""
    if g[x].data is None and g[x].quant is None:
        g.b.tensors[x] = replace(g[x], quant=Quant((scale,), (zero,), cuts=True))
    return x


def weight(g: OnnxLowering, x: str, scale: Array, zero: Array | None, axis: int | None) -> str:
    """Return the real values of a stored constant, annotated with their scales. Weights of int8 layers have no zero
    points: a weight with one keeps its numbers if they fit without it, else they are rounded again, with a note."""
    data = g.constant(x, "a quantized weight")
    zeros = np.zeros(scale.size, np.int64) if zero is None else zero.reshape(-1).astype(np.int64)
    scales = scale.reshape(-1).astype(np.float64)
    if data.dtype not in (np.int8, np.uint8):
        return real(g, x, data, scales, zeros, axis)
    column = [-1 if i == axis else 1 for i in range(data.ndim)]
    shifted = data.astype(np.int64) - (zeros.reshape(column) if axis is not None else zeros)
    if np.abs(shifted).max(initial=0) > 128 or shifted.max(initial=0) > 127:
        if not zeros.any() or data.ndim < 2:  # not the weight of a layer
            less = 128 if data.dtype == np.uint8 else 0
            return real(g, x, (data.astype(np.int64) - less).astype(np.int8), scales, zeros - less, axis)
        g.note("weights with zero points that do not fit into int8 without are rounded once more")
        scales, shifted = scales * 2, np.rint(shifted / 2).astype(np.int64).clip(-128, 127)
    return real(g, x, shifted.astype(np.int8), scales, np.zeros_like(zeros), axis)


def _blocks(g: OnnxLowering, x: str, data: Array, scale: Array, zero: Array | None, c: OnnxCall) -> str:
    """Return a float constant that has a scale for each block of numbers along an axis."""
    axis, size = g.axis(x, c.attribute("axis", 1)), c.attribute("block_size")
    if size < 1 or scale.ndim != data.ndim:
        raise CompileError(f"{c.op}: blocks of {size} do not fit", have=f"scales {list(scale.shape)}")
    spread = [np.repeat(v, size, axis).take(range(data.shape[axis]), axis) for v in (scale, zero) if v is not None]
    plain = data.astype(np.float64) - (spread[1] if len(spread) > 1 else 0)
    return g.b.const(f"{x}_real", (plain * spread[0]).astype(np.float32))


# --- operators on integers ----------------------------------------------------------------------------------


def _apply(g: OnnxLowering, op: str, inputs: Sequence[str | None], c: OnnxCall, **attributes: Any) -> str:
    """Apply the row of a float operator of ONNX."""
    own = {k: v for k, v in c.attributes.items() if k != "channels_last"}
    result = g.rows[op].build(
        g, OnnxCall(op, "", g.scope.opsets.get("", 0), c.name, tuple(inputs), 1, own | attributes)
    )
    return result if isinstance(result, str) else result[0]


def _read_operand(g: OnnxLowering, c: OnnxCall, i: int) -> str:
    """Return inputs i to i + 2 (stored tensor, scale, zero point) as a float tensor."""
    scale, zero, _ = _pair(g, c, i + 1)
    x = c.need(i)
    if g.known(x) is not None and (i or scale.size == 1):
        rank = len(g.shape(x))
        return weight(g, x, scale, zero, rank - 1 if scale.size > 1 else None)
    if scale.size != 1:
        raise CompileError(
            f"{c.op}: a computed value, or the first operand, must have one scale", have=f"{scale.size} scales"
        )
    return dequantize(g, x, float(scale.reshape(-1)[0]), _zero(zero))


def _store_result(g: OnnxLowering, c: OnnxCall, y: str, i: int) -> str:
    """Store a float tensor with the scale and zero point at inputs i and i + 1."""
    scale, zero, dtype = _pair(g, c, i)
    if zero is None:  # stored in the same type as the input
        known = g.stored.get(c.inputs[0] or "")
        dtype = DType.UINT8 if known is None or known.unsigned else DType.INT8
    return quantize(g, y, float(scale.reshape(-1)[0]), _zero(zero), dtype is DType.UINT8)


def layers_of(op: str, operands: int) -> Callable[[OnnxLowering, OnnxCall], Result]:
    """Make a row for an operator with this number of inputs (x, scale, zero point), and the output's scale and zero
    point."""

    def build(g: OnnxLowering, c: OnnxCall) -> str:
        if c.attribute("channels_last", 0):
            raise CompileError(f"{c.op}: channels_last is not supported", need="channels in dimension 1")
        return _store_result(
            g, c, _apply(g, op, [_read_operand(g, c, 3 * i) for i in range(operands)], c), 3 * operands
        )

    return build


def qlinear_conv(g: OnnxLowering, c: OnnxCall) -> str:
    scale, zero, _ = _pair(g, c, 4)
    w = weight(g, c.need(3), scale, zero, 0 if scale.size > 1 else None)
    bias = _bias(g, c, c.input(8), g.constant(c.input(1), "QLinearConv: the input's scale"), scale)
    return _store_result(g, c, _apply(g, "Conv", [_read_operand(g, c, 0), w, bias], c), 6)


def qgemm(g: OnnxLowering, c: OnnxCall) -> str:
    scale, zero, _ = _pair(g, c, 4)
    transposed = bool(c.attribute("transB", 0))
    w = weight(g, c.need(3), scale, zero, (0 if transposed else 1) if scale.size > 1 else None)
    alpha = float(c.attribute("alpha", 1.0))
    bias = _bias(g, c, c.input(6), alpha * g.constant(c.input(1), "QGemm: the input's scale"), scale)
    y = _apply(g, "Gemm", [_read_operand(g, c, 0), w, bias], c, beta=1.0)
    return _store_result(g, c, y, 7) if c.input(7) else y


def qlinear_concat(g: OnnxLowering, c: OnnxCall) -> str:
    parts = [_read_operand(g, c, i) for i in range(2, len(c.inputs), 3)]
    return _store_result(g, c, _apply(g, "Concat", parts, c), 0)


def qlinear_softmax(g: OnnxLowering, c: OnnxCall) -> str:
    x = _read_operand(g, c, 0)
    shape, axis = g.shape(x), g.axis(x, c.attribute("axis", -1))
    if c.attribute("opset", 13) < 13 and axis != len(shape) - 1:  # over all dimensions from the axis on
        flat = g.reshape(x, (*shape[:axis], int(np.prod(shape[axis:]))))
        return _store_result(g, c, g.reshape(_apply(g, "Softmax", [flat], c, axis=-1), shape), 3)
    return _store_result(g, c, _apply(g, "Softmax", [x], c, axis=axis), 3)


def integer(op: str) -> Callable[[OnnxLowering, OnnxCall], Result]:
    """Make a row for MatMulInteger and ConvInteger: in float, where their sums are exact."""

    def build(g: OnnxLowering, c: OnnxCall) -> str:
        plain = []
        for i in (0, 1):
            x, at = c.need(i), c.input(2 + i)
            zero = None if at is None else g.constant(at, f"{c.op}: a zero point")
            known, data = g.stored.get(x), g.known(x)
            less = float(zero.reshape(-1)[0]) if zero is not None else 0.0
            if zero is not None and zero.size > 1:
                raise CompileError(f"{c.op}: a zero point per channel is not supported")
            if data is not None:
                plain.append(g.b.const(f"{x}_real", data.astype(np.float32) - np.float32(less)))
                continue
            as_float = cast(g, x, DType.FLOAT32)
            plain.append(elementwise.sub(g, as_float, less - (128 if known and known.unsigned else 0)))
        shape = g.shape(c.need(1))
        terms = shape[-2] if op == "MatMul" and len(shape) > 1 else int(np.prod(shape[op == "Conv" :]))
        if terms * 255 * 255 >= EXACT:
            raise CompileError(
                f"{c.op}: sums of {terms} products are not supported",
                need=f"at most {EXACT // (255 * 255)}, which are exact in float32",
                try_="QLinearMatMul or QLinearConv, or the QDQ format",
            )
        return cast(g, _apply(g, op, plain, c), DType.INT32)

    return build


def dynamic(g: OnnxLowering, c: OnnxCall) -> str:
    raise CompileError(
        "DynamicQuantizeLinear is not supported: it measures a scale in every run",
        need="scales that are known before the image is built",
        try_="onnxruntime's quantize_static instead of quantize_dynamic; or the float model with `--int8`",
    )


def _bias(g: OnnxLowering, c: OnnxCall, x: str | None, x_scale: Array, w_scale: Array) -> str | None:
    """Return an int32 bias as float; its scale is the product of the input's and the weight's."""
    if x is None:
        return None
    data = g.constant(x, f"{c.op}: the bias").astype(np.float64)
    scales = float(x_scale.reshape(-1)[0]) * w_scale.reshape(-1).astype(np.float64)
    return g.b.const(f"{x}_real", (data * scales).astype(np.float32))


def _pair(g: OnnxLowering, c: OnnxCall, i: int) -> tuple[Array, Array | None, DType | None]:
    """Return scale and zero point at inputs i and i + 1, and the zero point's type, which is that of the stored
    tensor."""
    scale = g.constant(c.input(i), f"{c.op}: a scale")
    at = c.input(i + 1)
    if scale.dtype.kind != "f" or not scale.size:
        raise CompileError(f"{c.op}: a scale must be a float")
    if at is None:
        return scale, None, None
    zero = g.constant(at, f"{c.op}: a zero point")
    if zero.size not in (1, scale.size) or zero.dtype.kind not in "iu":
        raise CompileError(f"{c.op}: {zero.size} zero points for {scale.size} scales")
    if zero.size != scale.size:
        zero = np.broadcast_to(zero.reshape(-1), (scale.size,)).reshape(scale.shape)
    return scale, zero, g[at].dtype


def _zero(zero: Array | None) -> int:
    return 0 if zero is None else int(zero.reshape(-1)[0])


def _microsoft(rows: dict[str, OnnxRow]) -> dict[str, OnnxRow]:
    return {key(op, MICROSOFT): row for op, row in rows.items()}


ROWS: dict[str, OnnxRow] = {
    "QuantizeLinear": OnnxRow(quantize_linear),
    "DequantizeLinear": OnnxRow(dequantize_linear),
    "QLinearConv": OnnxRow(qlinear_conv),
    "QLinearMatMul": OnnxRow(layers_of("MatMul", 2)),
    "MatMulInteger": OnnxRow(integer("MatMul")),
    "ConvInteger": OnnxRow(integer("Conv")),
    "DynamicQuantizeLinear": OnnxRow(dynamic, refused=True),
    **_microsoft(
        {
            "QuantizeLinear": OnnxRow(quantize_linear),
            "DequantizeLinear": OnnxRow(dequantize_linear),
            "QGemm": OnnxRow(qgemm),
            "QLinearAdd": OnnxRow(layers_of("Add", 2)),
            "QLinearMul": OnnxRow(layers_of("Mul", 2)),
            "QLinearAveragePool": OnnxRow(layers_of("AveragePool", 1)),
            "QLinearGlobalAveragePool": OnnxRow(layers_of("GlobalAveragePool", 1)),
            "QLinearSigmoid": OnnxRow(layers_of("Sigmoid", 1)),
            "QLinearLeakyRelu": OnnxRow(layers_of("LeakyRelu", 1)),
            "QLinearReduceMean": OnnxRow(layers_of("ReduceMean", 1)),
            "QLinearConcat": OnnxRow(qlinear_concat),
            "QLinearSoftmax": OnnxRow(qlinear_softmax),
        }
    ),
}

"""Rows of the TFLite table: elementwise operators, softmax, and conversions between types and scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import named_operators
from baretorch.frontends.tflite import sixteen
from baretorch.frontends.tflite.call import Field, TfliteCall
from baretorch.frontends.tflite.lowering import (
    BYTES,
    TfliteLowering,
    TfliteRow,
    graph_type_of,
    is_raw,
    stored_as,
)
from baretorch.frontends.tflite.schema import LEAST_SCALE, TfTensor
from baretorch.ir.graph import DType, Op
from baretorch.ops.activations import Elu, Gelu, LeakyRelu, Prelu
from baretorch.ops.elementwise import Add, Arithmetic, Clamp, Div, Mul, Sub, TruncDivide
from baretorch.ops.functions import Rsqrt, Sigmoid, Tanh
from baretorch.ops.int8.litert import Rescale, rescale_of
from baretorch.ops.int8.litert_softmax import LiteRtSoftmax8
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.layout import Expand
from baretorch.ops.logic import Cast, Le, Lt, Where
from baretorch.ops.norm import LayerNorm
from baretorch.ops.reduce import Sum
from baretorch.ops.softmax import LogSoftmax, Softmax

RESCALED = (*BYTES, "int16", "int32")
L2_LEAST = 1e-6  # the smallest sum of squares that LiteRT divides by


def plain(op: Op) -> TfliteRow:
    """Make a row that applies the operator unchanged."""
    return TfliteRow(lambda g, call: g.apply(op, call), (type(op),))


def arithmetic(op: type[Arithmetic]) -> TfliteRow:
    """Make a row with an activation; integers have none."""

    def build(g: TfliteLowering, call: TfliteCall) -> str:
        return g.apply(op(*call.limits(0)), call)

    return TfliteRow(build, (op,), sixteen=lambda g, call: sixteen.arithmetic(g, call, op))


def div(g: TfliteLowering, call: TfliteCall) -> str:
    limits = call.limits(0)
    if g[call.x()].dtype is DType.FLOAT32:
        return g.apply(Div(*limits), call)
    return g.limit(g.apply(TruncDivide(), call), limits, call.y)


def swap_operands(op: Op) -> TfliteRow:
    """Make a row for the comparison with its operands swapped."""
    return TfliteRow(lambda g, call: g.b.add(op, call.x(1), call.x(0)), (type(op),))


def squared_difference(g: TfliteLowering, call: TfliteCall) -> str:
    difference = g.apply(Sub(), call)
    return g.b.add(Mul(), difference, difference)


def add_n(g: TfliteLowering, call: TfliteCall) -> str:
    first, *others = call.given()
    for other in others:
        first = g.b.add(Add(), first, other)
    return first


def prelu(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower prelu. In int8, the positive part and the negative one are added; one of them is 0."""
    x, slope, y = call.x(0), call.x(1), stored_as(call.y)
    if y is None:
        return g.b.add(Prelu(), x, slope)
    above, below = (g.note_scale(g.b.add(Clamp(*sides), x), g[x].quant) for sides in ((0.0, np.inf), (-np.inf, 0.0)))
    return g.b.add(Add(), above, g.note_scale(g.b.add(Mul(), below, slope), y))


def softmax(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower softmax of the last axis. A beta is a factor of the input's scale. A result of 16 bits is LiteRT's."""
    beta, x = call.real(0), call.x()
    if is_raw(call.y):
        return _softmax8(g, call)
    if beta != 1.0:
        if g[x].quant is not None:
            raise CompileError(f"SOFTMAX: beta {beta:g} is not supported in int8", need="beta 1")
        x = g.b.add(Mul(), x, g.b.const("beta", np.array(beta, np.float32)))
    return g.b.add(Softmax(len(g.shape(x)) - 1), x)


def _softmax8(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a softmax from int8 to int16 with a zero point."""
    t, y, beta = call.operands[0], call.y, call.real(0)
    quant = None if t is None else stored_as(t)
    fits = y.quant is not None and y.quant.zero_point == (-32768,) and abs(y.scale * 65536 - 1) <= 0.001
    if t is None or t.type != "int8" or quant is None or not fits or beta <= 0:
        raise CompileError(
            "SOFTMAX: this result with a zero point is not supported",
            have=str(y),
            need="an int8 input, and the scale 1/65536 and zero point -32768",
        )
    return g.b.add(LiteRtSoftmax8(quant.scale[0] * beta), g.store(call.x(), quant))


def quantize(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower QUANTIZE. From or to real numbers with 8 bits, the value stays, and only the scale of the result
    changes. Other integers are rescaled as in LiteRT."""
    t, y, x = call.operands[0], call.y, call.x()
    assert t is not None
    if {t.type, y.type} <= {"float32", *BYTES} or (t.type == "float32" and y.type == "int16" and not is_raw(y)):
        return x
    if not all(u.type in RESCALED and u.quant and u.quant.axis is None and u.scale >= LEAST_SCALE for u in (t, y)):
        need = f"float32 and 8 bits, or two of {', '.join(RESCALED)}, each with one scale"
        raise CompileError(f"QUANTIZE: {t.type} to {y.type} is not supported", have=str(y), need=need)
    x_quant, quant = stored_as(t), stored_as(y)
    x = x if x_quant is None else g.store(x, x_quant)
    to = "int8" if y.type in BYTES else y.type
    made = g.b.add(rescale_of(t.scale, _zero_point(t), y.scale, _zero_point(y), to), x)
    return made if quant is None else g.load(made, quant)


def _zero_point(t: TfTensor) -> int:
    """Return the zero point in the Graph, where uint8 is int8."""
    assert t.quant is not None
    return t.quant.zero_point[0] - (128 if t.type == "uint8" else 0)


def dequantize(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower DEQUANTIZE. A tensor with a scale already represents real numbers and stays; other stored numbers are
    converted."""
    t = call.operands[0]
    if t is None or g[call.x()].dtype is DType.FLOAT32:
        return call.x()
    if t.quant is None or t.quant.axis is not None:
        raise CompileError("DEQUANTIZE: the input has no scale, or several", have=str(t), need="one scale")
    zero = g.b.const("zero", np.array(t.quant.zero_point[0], np.float32))
    scale = g.b.const("scale", np.array(t.scale, np.float32))
    return g.b.add(Mul(), g.b.add(Sub(), g.b.add(Cast("float32"), call.x()), zero), scale)


def l2_normalization(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower x / sqrt(max(sum of squares, 1e-6)) over the last axis. In int8 it is a norm of the mean of squares
    instead."""
    x, count = call.x(), g.shape(call.x())[-1]
    if stored_as(call.y) is not None:
        shares = (g.b.const("share", np.full(1, v, np.float32)) for v in (1 / np.sqrt(count), 0))
        return g.b.add(LayerNorm((len(g.shape(x)) - 1,), L2_LEAST / count, centred=False), x, *shares)
    squares = g.b.add(Sum((len(g.shape(x)) - 1,), True), g.b.add(Mul(), x, x))
    factor = g.b.add(Rsqrt(), g.b.add(Clamp(L2_LEAST, np.inf), squares))
    return g.limit(g.b.add(Mul(), x, factor), call.limits(0), call.y)


def select(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower SELECT, whose condition may also have one value per row of the first dimension."""
    condition, a, b = call.given()
    rank = len(g.shape(a))
    if call.name == "SELECT" and len(g.shape(condition)) == 1 < rank:
        condition = g.reshape(condition, (*g.shape(condition), *(1,) * (rank - 1)))
    return g.b.add(Where(), condition, a, b)


def cast(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower CAST, which reads the stored numbers of 16 bits."""
    if any(t is not None and t.quant is not None and t.type in ("int8", "uint8") for t in (*call.operands, call.y)):
        raise CompileError("CAST: the stored numbers of a quantized tensor are not supported", need="DEQUANTIZE")
    if call.y.type == "int16" and call.y.quant is not None:
        raise CompileError("CAST: a result with a scale is not supported", need="QUANTIZE")
    to, x = graph_type_of(call.y), g.as_int16(call.operands[0], call.x()) or call.x()
    return x if g[x].dtype is to else g.b.add(Cast(to.label), x)


def broadcast_to(g: TfliteLowering, call: TfliteCall) -> str:
    return call.x() if g.shape(call.x()) == call.y.shape else g.b.add(Expand(call.y.shape), call.x())


def zeros_like(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower ZEROS_LIKE and FILL, whose shape is that of the result."""
    dtype = g.type_of(call.y)
    zero = g.b.const("zero", np.zeros((), dtype.numpy)) if call.name == "ZEROS_LIKE" else call.x(1)
    return g.b.add(Expand(call.y.shape), zero)


ROWS: dict[str, TfliteRow] = {
    **{name: plain(op()) for name, op in named_operators(lambda names: names.tflite).items()},
    "ELU": plain(Elu()),
    "ADD": arithmetic(Add),
    "SUB": arithmetic(Sub),
    "MUL": arithmetic(Mul),
    "DIV": TfliteRow(div, (Div, TruncDivide), "integers toward zero"),
    "ADD_N": TfliteRow(add_n, (Add,)),
    "GREATER": swap_operands(Lt()),
    "GREATER_EQUAL": swap_operands(Le()),
    "LOGISTIC": replace(plain(Sigmoid()), sixteen=lambda g, call: sixteen.curve(g, call, tanh=False)),
    "TANH": replace(plain(Tanh()), sixteen=lambda g, call: sixteen.curve(g, call, tanh=True)),
    "RELU": replace(plain(Clamp(0.0, np.inf)), sixteen=lambda g, call: sixteen.leaky_relu(g, call, 0.0)),
    "RELU6": plain(Clamp(0.0, 6.0)),
    "RELU_N1_TO_1": plain(Clamp(-1.0, 1.0)),
    "RELU_0_TO_1": plain(Clamp(0.0, 1.0)),
    "LEAKY_RELU": TfliteRow(
        lambda g, call: g.b.add(LeakyRelu(call.real(0)), call.x()),
        (LeakyRelu,),
        sixteen=lambda g, call: sixteen.leaky_relu(g, call, call.real(0)),
    ),
    "PRELU": TfliteRow(prelu, (Prelu, Clamp, Mul, Add)),
    "GELU": TfliteRow(lambda g, call: g.b.add(Gelu(bool(call.option(Field(0, "B")))), call.x()), (Gelu,)),
    "SQUARE": TfliteRow(lambda g, call: g.b.add(Mul(), call.x(), call.x()), (Mul,)),
    "SQUARED_DIFFERENCE": TfliteRow(squared_difference, (Sub, Mul)),
    "SOFTMAX": TfliteRow(softmax, (Softmax,), sixteen=sixteen.softmax, zeros=True),
    "LOG_SOFTMAX": TfliteRow(lambda g, call: g.b.add(LogSoftmax(len(g.shape(call.x())) - 1), call.x()), (LogSoftmax,)),
    "L2_NORMALIZATION": TfliteRow(l2_normalization, (Sum, Rsqrt, Mul, LayerNorm)),
    "SELECT": TfliteRow(select, (Where,)),
    "SELECT_V2": TfliteRow(select, (Where,)),
    "CAST": TfliteRow(cast, (Cast,), zeros=True),
    "QUANTIZE": TfliteRow(quantize, (Quantize, Rescale), zeros=True),
    "DEQUANTIZE": TfliteRow(dequantize, (Dequantize,), zeros=True),
    "BROADCAST_TO": TfliteRow(broadcast_to, (Expand,)),
    "FILL": TfliteRow(zeros_like, (Expand,)),
    "ZEROS_LIKE": TfliteRow(zeros_like, (Expand,)),
}

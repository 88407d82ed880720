"""Rows of the ONNX table: activation functions, and functions along an axis like softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baretorch.frontends.aten import activations as aten
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import OnnxCall, need_room
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ops.activations import (
    Elu,
    Gelu,
    Hardshrink,
    Hardsigmoid,
    LeakyRelu,
    Silu,
    Softplus,
    Softshrink,
    Threshold,
)
from baretorch.ops.elementwise import Add, Clamp, Div, Mul
from baretorch.ops.functions import Abs, Sigmoid
from baretorch.ops.index import IndexSelect
from baretorch.ops.logic import Lt, Where
from baretorch.ops.scan import ArgMax
from baretorch.ops.softmax import LogSoftmax, Softmax


def elu(g: OnnxLowering, call: OnnxCall) -> str:
    return g.b.add(Elu(float(call.attribute("alpha", 1.0))), call.need(0))


def selu(g: OnnxLowering, call: OnnxCall) -> str:
    alpha, gamma = (
        call.attribute("alpha", 1.67326319217681884765625),
        call.attribute("gamma", 1.05070102214813232421875),
    )
    return g.b.add(Elu(float(alpha * gamma), float(gamma)), call.need(0))


def hard_sigmoid(g: OnnxLowering, call: OnnxCall) -> str:
    alpha, beta = float(call.attribute("alpha", 0.2)), float(call.attribute("beta", 0.5))
    if (np.float32(alpha), beta) == (np.float32(1 / 6), 0.5):
        return g.b.add(Hardsigmoid(), call.need(0))
    return g.b.add(Clamp(0.0, 1.0), line(g, call.need(0), alpha, beta))


def line(g: Lowering, x: str, alpha: float, beta: float) -> str:
    return g.b.add(Add(), g.b.add(Mul(), x, g.operand(alpha, x)), g.operand(beta, x))


def softsign(g: Lowering, x: str) -> str:
    return g.b.add(Div(), x, g.b.add(Add(), g.b.add(Abs(), x), g.operand(1.0, x)))


def swish(g: OnnxLowering, call: OnnxCall) -> str:
    return _swish(g, call.need(0), float(call.attribute("alpha", 1.0)))


def swiglu(g: OnnxLowering, call: OnnxCall) -> str:
    return g.b.add(Mul(), _swish(g, call.need(0), float(call.attribute("alpha", 1.0))), call.need(1))


def _swish(g: OnnxLowering, x: str, alpha: float) -> str:
    if alpha == 1.0:
        return g.b.add(Silu(), x)
    return g.b.add(Mul(), x, g.b.add(Sigmoid(), g.b.add(Mul(), x, g.operand(alpha, x))))


def shrink(g: OnnxLowering, call: OnnxCall) -> str:
    """Move x by `bias` toward 0 if it is farther from 0 than `lambd`, else return 0."""
    x = call.need(0)
    limit, bias = float(call.attribute("lambd", 0.5)), float(call.attribute("bias", 0.0))
    if bias == 0.0:
        return g.b.add(Hardshrink(limit), x)
    if bias == limit:
        return g.b.add(Softshrink(limit), x)
    above, below = g.b.add(Lt(), g.operand(limit, x), x), g.b.add(Lt(), x, g.operand(-limit, x))
    up, down = (g.b.add(Add(), x, g.operand(b, x)) for b in (bias, -bias))
    return g.b.add(Where(), above, down, g.b.add(Where(), below, up, g.operand(0.0, x)))


def along(op: type[Softmax]) -> Callable[[OnnxLowering, OnnxCall], str]:
    def build(g: OnnxLowering, call: OnnxCall) -> str:
        x = call.need(0)
        return g.b.add(op(g.axis(x, int(call.attribute("axis", -1)))), x)

    return build


def hardmax(g: OnnxLowering, call: OnnxCall) -> str:
    """Look up the rows of an identity matrix that argmax selects."""
    x = call.need(0)
    rank, axis = len(g.shape(x)), g.axis(x, int(call.attribute("axis", -1)))
    need_room("Hardmax", g.shape(x)[axis], g.shape(x)[axis])
    where = g.b.add(ArgMax(axis, False), x)
    rows = g.b.add(IndexSelect(0), g.b.const("unit", np.eye(g.shape(x)[axis], dtype=np.float32)), where)
    if axis == rank - 1:
        return rows
    return g.permute(rows, (*range(axis), rank - 1, *range(axis, rank - 1)))


ROWS: dict[str, OnnxRow] = {
    "LeakyRelu": OnnxRow(lambda g, call: g.b.add(LeakyRelu(float(call.attribute("alpha", 0.01))), call.need(0))),
    "Elu": OnnxRow(elu),
    "Selu": OnnxRow(selu),
    "Celu": OnnxRow(lambda g, call: aten.celu(g, call.need(0), float(call.attribute("alpha", 1.0)))),
    "Gelu": OnnxRow(lambda g, call: g.b.add(Gelu(call.attribute("approximate", "none") == "tanh"), call.need(0))),
    "HardSigmoid": OnnxRow(hard_sigmoid),
    "Softplus": OnnxRow(lambda g, call: g.b.add(Softplus(), call.need(0))),
    "Softsign": OnnxRow(lambda g, call: softsign(g, call.need(0))),
    "Swish": OnnxRow(swish),
    "SwiGLU": OnnxRow(swiglu),
    "Shrink": OnnxRow(shrink),
    "ThresholdedRelu": OnnxRow(
        lambda g, call: g.b.add(Threshold(float(call.attribute("alpha", 1.0)), 0.0), call.need(0))
    ),
    "Softmax": OnnxRow(along(Softmax)),
    "LogSoftmax": OnnxRow(along(LogSoftmax)),
    "Hardmax": OnnxRow(hardmax),
}

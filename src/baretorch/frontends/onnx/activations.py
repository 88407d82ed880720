"""Rows of the ONNX table: activation functions, and functions along an axis like softmax."""

from __future__ import annotations

import numpy as np

from baretorch.frontends.aten import activations as aten
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import need_room
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
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

GAMMA = 1.05070102214813232421875  # of selu


def selu(g: OnnxLowering, x: str, *, alpha: float = 1.67326319217681884765625, gamma: float = GAMMA) -> str:
    return g.b.add(Elu(alpha * gamma, gamma), x)


def hard_sigmoid(g: OnnxLowering, x: str, *, alpha: float = 0.2, beta: float = 0.5) -> str:
    if (np.float32(alpha), beta) == (np.float32(1 / 6), 0.5):
        return g.b.add(Hardsigmoid(), x)
    return g.b.add(Clamp(0.0, 1.0), affine_line(g, x, alpha, beta))


def affine_line(g: Lowering, x: str, alpha: float, beta: float) -> str:
    return g.b.add(Add(), g.b.add(Mul(), x, g.operand(alpha, x)), g.operand(beta, x))


def softsign(g: Lowering, x: str) -> str:
    return g.b.add(Div(), x, g.b.add(Add(), g.b.add(Abs(), x), g.operand(1.0, x)))


def swish(g: OnnxLowering, x: str, *, alpha: float = 1.0) -> str:
    if alpha == 1.0:
        return g.b.add(Silu(), x)
    return g.b.add(Mul(), x, g.b.add(Sigmoid(), g.b.add(Mul(), x, g.operand(alpha, x))))


def shrink(g: OnnxLowering, x: str, *, lambd: float = 0.5, bias: float = 0.0) -> str:
    """Move x by `bias` toward 0 if it is farther from 0 than `lambd`, else return 0."""
    if bias == 0.0:
        return g.b.add(Hardshrink(lambd), x)
    if bias == lambd:
        return g.b.add(Softshrink(lambd), x)
    above, below = g.b.add(Lt(), g.operand(lambd, x), x), g.b.add(Lt(), x, g.operand(-lambd, x))
    up, down = (g.b.add(Add(), x, g.operand(b, x)) for b in (bias, -bias))
    return g.b.add(Where(), above, down, g.b.add(Where(), below, up, g.operand(0.0, x)))


def hardmax(g: OnnxLowering, x: str, *, axis: int = -1) -> str:
    """Look up the rows of an identity matrix that argmax selects."""
    rank, axis = len(g.shape(x)), g.axis(x, axis)
    need_room("Hardmax", g.shape(x)[axis], g.shape(x)[axis])
    where = g.b.add(ArgMax(axis, False), x)
    rows = g.b.add(IndexSelect(0), g.b.const("unit", np.eye(g.shape(x)[axis], dtype=np.float32)), where)
    if axis == rank - 1:
        return rows
    return g.permute(rows, (*range(axis), rank - 1, *range(axis, rank - 1)))


ROWS: dict[str, OnnxRow] = {
    "LeakyRelu": row(lambda g, x, *, alpha=0.01: g.b.add(LeakyRelu(alpha), x)),
    "Elu": row(lambda g, x, *, alpha=1.0: g.b.add(Elu(alpha), x)),
    "Selu": row(selu),
    "Celu": row(lambda g, x, *, alpha=1.0: aten.celu(g, x, alpha)),
    "Gelu": row(lambda g, x, *, approximate="none": g.b.add(Gelu(approximate == "tanh"), x)),
    "HardSigmoid": row(hard_sigmoid),
    "Softplus": row(lambda g, x: g.b.add(Softplus(), x)),
    "Softsign": row(softsign),
    "Swish": row(swish),
    "SwiGLU": row(lambda g, x, y, *, alpha=1.0: g.b.add(Mul(), swish(g, x, alpha=alpha), y)),
    "Shrink": row(shrink),
    "ThresholdedRelu": row(lambda g, x, *, alpha=1.0: g.b.add(Threshold(alpha, 0.0), x)),
    "Softmax": row(lambda g, x, *, axis=-1: g.b.add(Softmax(g.axis(x, axis)), x)),
    "LogSoftmax": row(lambda g, x, *, axis=-1: g.b.add(LogSoftmax(g.axis(x, axis)), x)),
    "Hardmax": row(hardmax),
}

"""Rows of the ONNX table: losses, for models that compute their own."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise, index, shapes
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.frontends.onnx.types import need_float
from baretorch.ops.elementwise import Div, Mul
from baretorch.ops.functions import Neg
from baretorch.ops.logic import Eq, Where
from baretorch.ops.reduce import Mean, Sum
from baretorch.ops.softmax import LogSoftmax


def negative_log_likelihood(g: OnnxLowering, call: OnnxCall) -> str:
    return _loss(g, call, call.need(0))


def softmax_cross_entropy(g: OnnxLowering, call: OnnxCall) -> Result:
    need_float(g, call.op, call.need(0))
    logs = g.b.add(LogSoftmax(1), call.need(0))
    loss = _loss(g, call, logs)
    return (loss, logs)[: call.outputs] if call.outputs > 1 else loss


def _loss(g: OnnxLowering, call: OnnxCall, logs: str) -> str:
    """Return minus the entry of each target's class, times the class's weight; ignored targets have weight 0."""
    target, weight = call.need(1), call.input(2)
    need_float(g, call.op, logs)
    picked = shapes.squeeze(g, index.gather(g, logs, 1, shapes.unsqueeze(g, target, 1)), 1)
    loss = g.b.add(Neg(), picked)
    weights = None if weight is None else index.select_rows(g, weight, 0, target)
    ignored = call.attribute("ignore_index")
    if ignored is not None:
        gone = elementwise.compared(g, Eq(), target, int(ignored))
        if weights is None:
            weights = g.b.const("weights", np.ones(g.shape(target), np.float32))
        weights = g.b.add(Where(), gone, g.operand(0.0, logs), weights)
        loss = g.b.add(Where(), gone, g.operand(0.0, logs), loss)
    if weights is not None:
        loss = g.b.add(Mul(), loss, weights)
    how, every = call.attribute("reduction", "mean"), tuple(range(len(g.shape(target))))
    if how == "none":
        return loss
    if how == "sum" or weights is not None:
        total = g.b.add(Sum(every, False), loss)
        return total if how == "sum" else g.b.add(Div(), total, g.b.add(Sum(every, False), weights or loss))
    if how != "mean":
        raise CompileError(f"{call.op}: no reduction is called {how!r}", need="none, sum or mean")
    return g.b.add(Mean(every, False), loss)


ROWS: dict[str, OnnxRow] = {
    "NegativeLogLikelihoodLoss": OnnxRow(negative_log_likelihood),
    "SoftmaxCrossEntropyLoss": OnnxRow(softmax_cross_entropy),
}

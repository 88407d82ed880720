"""Rows of the ONNX table: arithmetic and functions, element by element."""

from __future__ import annotations

from collections.abc import Callable

from baretorch.frontends.aten import elementwise
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row
from baretorch.ir import Op
from baretorch.ops.functions import Sigmoid, Tanh


def unary(op: Op) -> Row:
    return Row(lambda g, c: g.b.add(op, c.need(0)))


def binary(build: Callable[[OnnxLowering, str, str], str]) -> Row:
    return Row(lambda g, c: build(g, c.need(0), c.need(1)))


def clip(g: OnnxLowering, c: Call) -> str:
    lo, hi = (g.known(c.input(i)) for i in (1, 2))
    return elementwise.clamp(
        g, c.need(0), c.input(1) if lo is None else lo.item(), c.input(2) if hi is None else hi.item()
    )


ROWS: dict[str, Row] = {
    "Add": binary(elementwise.add),
    "Sub": binary(elementwise.sub),
    "Mul": binary(elementwise.mul),
    "Div": binary(elementwise.div),
    "Relu": Row(lambda g, c: elementwise.clamp(g, c.need(0), 0)),
    "Clip": Row(clip),
    "Sigmoid": unary(Sigmoid()),
    "Tanh": unary(Tanh()),
}

"""Rows of the ONNX table: reductions, softmax."""

from __future__ import annotations

from baretorch.frontends.aten import reduce
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row


def axes_of(g: OnnxLowering, c: Call) -> tuple[int, ...] | None:
    """The axes of a reduction, an attribute before opset 18; None is all of them, () none."""
    x = c.need(0)
    given = g.ints(c.input(1), f"{c.op}: axes") if c.input(1) else c.attribute("axes")
    if not given:
        return () if c.attribute("noop_with_empty_axes", 0) else None
    return tuple(g.axis(x, a) for a in given)


def mean(g: OnnxLowering, c: Call) -> str:
    axes = axes_of(g, c)
    if axes == ():
        return c.need(0)
    return reduce.mean(g, c.need(0), axes, bool(c.attribute("keepdims", 1)))


ROWS: dict[str, Row] = {
    "ReduceMean": Row(mean),
    "Softmax": Row(lambda g, c: reduce.softmax(g, c.need(0), c.attribute("axis", -1))),
    "LogSoftmax": Row(lambda g, c: reduce.log_softmax(g, c.need(0), c.attribute("axis", -1))),
}

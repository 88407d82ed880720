"""Rows of the ONNX table: what changes only shape, order or place."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index, shapes
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row


def reshape(g: OnnxLowering, c: Call) -> str:
    """0 is the input's own size, if zeros are not allowed; -1 is what is left."""
    x, wanted = c.need(0), g.ints(c.input(1), "Reshape: the shape")
    own = g.shape(x)
    if not c.attribute("allowzero", 0):
        wanted = tuple(own[i] if n == 0 else n for i, n in enumerate(wanted))
    return shapes.reshape(g, x, wanted)


def flatten(g: OnnxLowering, c: Call) -> str:
    shape, axis = g.shape(c.need(0)), c.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return g.reshape(c.need(0), (int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))


def transpose(g: OnnxLowering, c: Call) -> str:
    x = c.need(0)
    return g.permute(x, c.attribute("perm", tuple(reversed(range(len(g.shape(x)))))))


def squeeze(g: OnnxLowering, c: Call) -> str:
    return shapes.squeeze(g, c.need(0), g.ints(c.input(1), "Squeeze: axes") if c.input(1) else None)


def unsqueeze(g: OnnxLowering, c: Call) -> str:
    x, axes = c.need(0), g.ints(c.input(1), "Unsqueeze: axes")
    rank = len(g.shape(x)) + len(axes)
    new = {a + rank if a < 0 else a for a in axes}
    old = iter(g.shape(x))
    return g.reshape(x, tuple(1 if i in new else next(old) for i in range(rank)))


def concat(g: OnnxLowering, c: Call) -> str:
    return shapes.cat(g, [x for x in c.inputs if x], c.attribute("axis"))


def gather(g: OnnxLowering, c: Call) -> str:
    """By 0, 1, 2 … to the end it is the input itself, as exporters write it."""
    x, at = c.need(0), c.need(1)
    axis = g.axis(x, c.attribute("axis", 0))
    known = g.known(at)
    if known is None or not g.shape(x):
        raise CompileError("Gather by indices that are no constants is not supported yet")
    size = g.shape(x)[axis]
    if known.ndim == 1 and np.array_equal(known, np.arange(size)):
        return x
    if known.ndim == 0:
        i = int(known)
        return shapes.select(g, x, axis, i)
    return index.index_select(g, x, axis, at)


ROWS: dict[str, Row] = {
    "Identity": Row(lambda g, c: c.need(0)),
    "Reshape": Row(reshape),
    "Flatten": Row(flatten),
    "Transpose": Row(transpose),
    "Squeeze": Row(squeeze),
    "Unsqueeze": Row(unsqueeze),
    "Concat": Row(concat),
    "Gather": Row(gather),
}

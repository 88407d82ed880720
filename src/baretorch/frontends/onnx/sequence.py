"""Rows of the ONNX table: matrix products, recurrent layers, attention."""

from __future__ import annotations

from baretorch.frontends.aten import sequence
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row
from baretorch.ops.elementwise import Add, Mul


def gemm(g: OnnxLowering, c: Call) -> str:
    """alpha a b + beta c, either matrix transposed first. With a constant matrix and a bias per column it is a linear
    layer."""
    a, b, bias = c.need(0), c.need(1), c.input(2)
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    if c.attribute("transA", 0):
        a = g.permute(a, (1, 0))
    weight = b if c.attribute("transB", 0) else g.permute(b, (1, 0))
    columns = g.shape(weight)[0]
    vector = bias is not None and g.shape(bias) in ((columns,), (1, columns))
    if alpha == 1 and (bias is None or (beta == 1 and vector)) and g.known(b) is not None:
        if bias is not None:
            bias = g.reshape(bias, (columns,))
        return sequence.linear(g, a, weight, bias)
    y = sequence.matmul(g, a, g.permute(b, (1, 0)) if c.attribute("transB", 0) else b)
    y = y if alpha == 1 else g.b.add(Mul(), y, g.operand(alpha, y))
    if bias is None or beta == 0:
        return y
    return g.b.add(Add(), y, bias if beta == 1 else g.b.add(Mul(), bias, g.operand(beta, bias)))


ROWS: dict[str, Row] = {
    "MatMul": Row(lambda g, c: sequence.matmul(g, c.need(0), c.need(1))),
    "Gemm": Row(gemm),
}

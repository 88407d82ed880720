"""Rows of the ONNX table: matrix products. A constant on the right makes a linear layer."""

from __future__ import annotations

import numpy as np

from baretorch.frontends.aten.products import linear_layer, matmul
from baretorch.frontends.einsum import einsum
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.solve import Det


def product(g: OnnxLowering, a: str, b: str) -> str:
    need_float(g, "MatMul", a, b)
    return matmul(g, a, b)


def gemm(
    g: OnnxLowering,
    a: str,
    b: str,
    c: str | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> str:
    """Lower alpha a b + beta c; a constant c of one row is a bias."""
    need_float(g, "Gemm", a, b)
    if transA:
        a = g.permute(a, (1, 0))
    if g[b].data is None:
        y = _times(g, matmul(g, a, g.permute(b, (1, 0)) if transB else b), alpha)
    else:
        weight = _times(g, b, alpha)
        weight = weight if transB else g.permute(weight, (1, 0))
        bias = _bias(g, c, beta, g.shape(weight)[0])
        y = linear_layer(g, a, weight, bias)
        c = None if bias else c
    return y if c is None or beta == 0 else g.b.add(Add(), y, _times(g, c, beta))


def _times(g: Lowering, x: str, factor: float) -> str:
    data = g[x].data
    if factor == 1.0:
        return x
    if data is not None:
        return g.b.const(x, (data * np.float32(factor)).astype(data.dtype))
    return g.b.add(Mul(), x, g.operand(factor, x))


def _bias(g: Lowering, c: str | None, beta: float, columns: int) -> str | None:
    data = None if c is None else g[c].data
    if c is None or data is None or data.size not in (1, columns) or (data.ndim and data.shape[-1] != data.size):
        return None
    if data.shape == (columns,) and beta == 1.0:
        return c
    whole = np.broadcast_to(data.reshape(-1) * np.float32(beta), (columns,))
    return g.b.const(c, np.ascontiguousarray(whole, dtype=np.float32))


def sum_of_products(g: OnnxLowering, call: OnnxCall) -> str:
    names = [call.need(i) for i in range(len(call.inputs))]
    need_float(g, "Einsum", *names)
    return einsum(g, str(call.attribute("equation")), names)


ROWS: dict[str, OnnxRow] = {
    "MatMul": row(product),
    "Gemm": row(gemm),
    "Einsum": OnnxRow(sum_of_products),
    "Det": row(lambda g, x: g.b.add(Det(), x)),
}

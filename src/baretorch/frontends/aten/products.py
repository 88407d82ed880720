"""Rows of the ATen table: matrix products, linear layers, and small systems of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.moves import expand
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import transpose
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.ops.solve import Det, Solve


def linear_layer(g: Lowering, x: str, weight: str, bias: str | None = None) -> str:
    return g.b.add(Linear(), x, weight, *((bias,) if bias else ()))


def matmul(g: Lowering, a: str, b: str) -> str:
    """Lower torch.matmul, bmm, mm, mv and dot: a vector is a row on the left and a column on the right."""
    if len(g.shape(b)) == 2 and _constant(g, b):
        return linear_layer(g, a, g.permute(b, (1, 0)))
    left, right = g.shape(a), g.shape(b)
    row, column = len(left) == 1, len(right) == 1
    y = g.b.add(Matmul(), shapes.unsqueeze(g, a, 0) if row else a, shapes.unsqueeze(g, b, 1) if column else b)
    shape = g.shape(y)
    return shapes.reshape(g, y, (*shape[:-2], *shape[-2:][row : 2 - column]))


def linear(g: Lowering, x: str, weight: str, bias: str | None = None) -> str:
    if _constant(g, weight) and (bias is None or _constant(g, bias)):
        return linear_layer(g, x, weight, bias)
    y = matmul(g, x, shapes.t(g, weight))
    return y if bias is None else g.b.add(Add(), y, bias)


def addmm(g: Lowering, c: str, a: str, b: str, beta: Scalar = 1, alpha: Scalar = 1) -> str:
    """Lower beta c + alpha a b; also for baddbmm and addmv."""
    columns = g.shape(b)[1:]
    if beta == alpha == 1 and g.shape(c) == columns and len(columns) == 1 and _constant(g, b) and _constant(g, c):
        return linear_layer(g, a, g.permute(b, (1, 0)), c)
    y = matmul(g, a, b)
    if alpha != 1:
        y = g.b.add(Mul(), y, g.operand(alpha, y))
    if beta == 0:  # c does not count, even if it is NaN
        return y
    if beta != 1:
        c = g.b.add(Mul(), c, g.operand(beta, c))
    return g.b.add(Add(), y, c)


def _constant(g: Lowering, name: str) -> bool:
    """Report whether the value is a constant, or will be after passes have computed what depends on constants only."""
    if g[name].data is not None:
        return True
    node = next((n for n in g.b.nodes if name in n.outputs), None)
    return node is not None and all(_constant(g, i) for i in node.inputs)


# --- systems of linear equations ------------------------------------------------------------------------------


def inv(g: Lowering, x: str, *_: Any) -> str:
    """Lower an inverse, without the check for singular matrices, which raises in PyTorch."""
    return g.b.add(Solve(), x, g.b.const("one", np.eye(g.shape(x)[-1], dtype=np.float32)))


def solve(g: Lowering, a: str, b: str, left: bool = True, *_: Any) -> str:
    """Lower a system of equations. A right side with one dimension less is a vector, or one vector per matrix."""
    shape = g.shape(b)
    if len(shape) == 1 or shape == g.shape(a)[:-1]:
        return g.reshape(solve(g, a, g.reshape(b, (*shape, 1))), shape if len(shape) > 1 else g.shape(a)[:-1])
    if not left:  # y a = b is the transpose of a y = b
        return transpose(g, solve(g, transpose(g, a, -2, -1), transpose(g, b, -2, -1)), -2, -1)
    batch = np.broadcast_shapes(g.shape(a)[:-2], shape[:-2])
    matrices = expand(g, a, (*batch, *g.shape(a)[-2:]))
    return g.b.add(Solve(), matrices, b if len(shape) == 2 else expand(g, b, (*batch, *shape[-2:])))


def det(g: Lowering, x: str) -> str:
    return g.b.add(Det(), x)


ROWS: dict[str, AtenRow] = {
    **rows("linear", linear, Linear, Matmul, Add),
    **rows("addmm baddbmm addmv", addmm, Linear, Matmul, Add, Mul),
    **rows("matmul mm bmm mv dot", matmul, Linear, Matmul),
    **rows("linalg_inv linalg_inv_ex inverse", inv, Solve),
    **rows("linalg_solve linalg_solve_ex _linalg_solve_ex", solve, Solve),
    **rows("linalg_det det _linalg_det", det, Det),
}

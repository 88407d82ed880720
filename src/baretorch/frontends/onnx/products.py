"""Rows of the ONNX table: matrix products. A constant on the right makes a linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import constants, layers
from baretorch.frontends.aten.sequence import matmul
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.lowering import OnnxLowering
from baretorch.frontends.onnx.rows import Call, Row
from baretorch.frontends.onnx.types import need_float
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.reduce import Sum
from baretorch.ops.solve import Det

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def product(g: OnnxLowering, call: Call) -> str:
    a, b = call.need(0), call.need(1)
    need_float(g, call.op, a, b)
    return matmul(g, a, b)


def gemm(g: OnnxLowering, call: Call) -> str:
    """alpha a b + beta c; a constant c of one row is a bias."""
    a, b, c = call.need(0), call.need(1), call.input(2)
    need_float(g, "Gemm", a, b)
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    if call.attribute("transA", 0):
        a = g.permute(a, (1, 0))
    if g[b].data is None:
        y = _times(g, matmul(g, a, g.permute(b, (1, 0)) if call.attribute("transB", 0) else b), alpha)
    else:
        weight = _times(g, b, alpha)
        weight = weight if call.attribute("transB", 0) else g.permute(weight, (1, 0))
        bias = _bias(g, c, beta, g.shape(weight)[0])
        y = layers.linear(g, a, weight, bias)
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
    row = np.broadcast_to(data.reshape(-1) * np.float32(beta), (columns,))
    return g.b.const(c, np.ascontiguousarray(row, dtype=np.float32))


# --- einsum ---------------------------------------------------------------------------------------------------


def einsum(g: OnnxLowering, call: Call) -> str:
    """One operand after the other is multiplied with what came of those before it: letters that are left out are
    summed as soon as nobody else has them."""
    names = [call.need(i) for i in range(len(call.inputs))]
    need_float(g, "Einsum", *names)
    terms, result = _terms(str(call.attribute("equation")), [len(g.shape(n)) for n in names])
    terms = [_without_twins(g, names, i, term) for i, term in enumerate(terms)]
    name, term = names[0], terms[0]
    for i in range(1, len(names)):
        later = set(result).union(*terms[i + 1 :])
        name, term = _joined(g, (name, term), (names[i], terms[i]), later)
    name, term = _summed(g, name, term, set(result))
    return _ordered(g, name, term, result)


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; dots stand for as many dimensions as there are."""
    equation = equation.replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise CompileError(f"Einsum: {equation!r} is for {len(terms)} operands", have=f"{len(ranks)} operands")
    free = [c for c in LETTERS if c not in equation]
    dots = max([r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t] + [0])
    names = "".join(free[:dots])
    if not arrow:
        found = "".join(terms).replace("...", "")
        result = ("..." if dots else "") + "".join(sorted(c for c in set(found) if found.count(c) == 1))
    full = []
    for term, rank in zip(terms, ranks, strict=True):
        own = rank - len(term) + 3 if "..." in term else 0
        full.append(term.replace("...", names[dots - own :]))
        if len(full[-1]) != rank:
            raise CompileError(f"Einsum: {equation!r} does not fit", have=f"an operand of {rank} dimensions")
    return full, result.replace("...", names)


def _without_twins(g: Lowering, names: list[str], i: int, term: str) -> str:
    """A letter that an operand has twice takes its diagonal."""
    while len(set(term)) != len(term):
        twin = next(c for c in term if term.count(c) > 1)
        a = term.index(twin)
        b = term.index(twin, a + 1)
        names[i] = constants.diagonal(g, names[i], 0, a, b)
        term = "".join(c for j, c in enumerate(term) if j not in (a, b)) + twin
    return term


def _summed(g: Lowering, name: str, term: str, kept: set[str]) -> tuple[str, str]:
    gone = tuple(i for i, c in enumerate(term) if c not in kept)
    if not gone:
        return name, term
    return g.b.add(Sum(gone, False), name), "".join(c for c in term if c in kept)


def _joined(g: Lowering, left: tuple[str, str], right: tuple[str, str], later: set[str]) -> tuple[str, str]:
    """A product of matrices: letters that both have and that stay are the batch, those that go are summed over."""
    a, ta = _summed(g, *left, later | set(right[1]))
    b, tb = _summed(g, *right, later | set(ta))
    sizes: dict[str, int] = {}
    for term, shape in ((ta, g.shape(a)), (tb, g.shape(b))):
        for c, n in zip(term, shape, strict=True):
            sizes[c] = max(n, sizes.get(c, 1))
    both = [c for c in ta if c in tb]
    batch, inner = [c for c in both if c in later], [c for c in both if c not in later]
    rows, columns = [c for c in ta if c not in both], [c for c in tb if c not in both]
    if any(g.shape(n)[t.index(c)] != sizes[c] for n, t in ((a, ta), (b, tb)) for c in both):
        raise CompileError("Einsum: dimensions of 1 that stand for more are not supported", have=f"{g[a]}, {g[b]}")
    ordered_a = _ordered(g, a, ta, "".join((*batch, *rows, *inner)))
    ordered_b = _ordered(g, b, tb, "".join((*batch, *inner, *columns)))
    m, k, n = (prod(sizes[c] for c in some) for some in (rows, inner, columns))
    outer = [sizes[c] for c in batch]
    y = matmul(g, g.reshape(ordered_a, (*outer, m, k)), g.reshape(ordered_b, (*outer, k, n)))
    term = "".join((*batch, *rows, *columns))
    return g.reshape(y, [sizes[c] for c in term]), term


def _ordered(g: Lowering, name: str, term: str, wanted: str) -> str:
    if sorted(term) != sorted(wanted):
        raise CompileError(f"Einsum: the result has letters {wanted!r}, and there are {term!r}")
    dims = tuple(term.index(c) for c in wanted)
    return name if dims == tuple(range(len(dims))) else g.permute(name, dims)


ROWS: dict[str, Row] = {
    "MatMul": Row(product),
    "Gemm": Row(gemm),
    "Einsum": Row(einsum),
    "Det": Row(lambda g, call: g.b.add(Det(), call.need(0))),
}

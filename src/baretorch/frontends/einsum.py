"""Einstein sums as matrix products: operand by operand, with what both have and the result too as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from baretorch.errors import CompileError
from baretorch.frontends.aten.sequence import matmul
from baretorch.frontends.lowering import Lowering
from baretorch.ops.reduce import Sum

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(g: Lowering, formula: str, operands: Sequence[str]) -> str:
    terms, result = _spelled_out(g, formula, operands)
    (labels, x), *others = zip(terms, operands, strict=True)
    for i, (term, y) in enumerate(others, 2):
        wanted = set(result).union(*terms[i:])
        labels, x = _product(g, labels, x, term, y, wanted)
    labels, x = _summed(g, labels, x, set(result))
    return g.permute(x, [labels.index(c) for c in result]) if labels != result else x


def _spelled_out(g: Lowering, formula: str, operands: Sequence[str]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, which are those that stand once where nothing is said."""
    left, arrow, result = formula.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in LETTERS if c not in formula]
    spare = max([len(g.shape(x)) - len(t) + 3 for t, x in zip(terms, operands, strict=True) if "..." in t], default=0)
    dots = "".join(free[:spare])
    full = [
        t.replace("...", dots[spare - (len(g.shape(x)) - len(t) + 3) :]) if "..." in t else t
        for t, x in zip(terms, operands, strict=True)
    ]
    joined = "".join(full)
    if not arrow:
        result = "..." + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    result = result.replace("...", dots)
    if any(len(set(t)) != len(t) for t in full):
        raise CompileError(
            f"einsum: {formula!r} takes a diagonal, which is not supported", try_="x.diagonal() before the sum"
        )
    return full, result


def _summed(g: Lowering, labels: str, x: str, wanted: set[str]) -> tuple[str, str]:
    """Without the letters that nobody wants."""
    gone = tuple(i for i, c in enumerate(labels) if c not in wanted)
    return ("".join(c for c in labels if c in wanted), g.b.add(Sum(gone, False), x)) if gone else (labels, x)


def _product(g: Lowering, a: str, x: str, b: str, y: str, wanted: set[str]) -> tuple[str, str]:
    """The product of two operands, over the letters that only they have; a constant goes to the right, where it is the
    weight of a linear layer."""
    if g[x].data is not None and g[y].data is None:
        a, x, b, y = b, y, a, x
    a, x = _summed(g, a, x, wanted | set(b))
    b, y = _summed(g, b, y, wanted | set(a))
    batch = [c for c in a if c in b and c in wanted]
    inner = [c for c in a if c in b and c not in wanted]
    left, right = [c for c in a if c not in b], [c for c in b if c not in a]
    sizes = {**dict(zip(a, g.shape(x), strict=True)), **dict(zip(b, g.shape(y), strict=True))}

    def arranged(labels: str, t: str, *groups: list[str]) -> str:
        t = g.permute(t, [labels.index(c) for group in groups for c in group])
        flat = [prod(sizes[c] for c in group) for group in groups]
        return g.reshape(t, flat if batch else flat[1:])

    made = matmul(g, arranged(a, x, batch, left, inner), arranged(b, y, batch, inner, right))
    labels = "".join((*batch, *left, *right))
    return labels, g.reshape(made, [sizes[c] for c in labels])

"""Computes Einstein sums as matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from baretorch.errors import CompileError
from baretorch.frontends.aten import constants
from baretorch.frontends.aten.products import matmul
from baretorch.frontends.lowering import Lowering
from baretorch.ops.reduce import Sum

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(g: Lowering, equation: str, operands: Sequence[str]) -> str:
    """Multiply the operands one after the other. A letter is summed as soon as neither a later operand nor the result
    has it."""
    names = list(operands)
    terms, result = _terms(equation, [len(g.shape(n)) for n in names])
    terms = [_take_diagonals(g, names, i, term) for i, term in enumerate(terms)]
    name, term = names[0], terms[0]
    for i in range(1, len(names)):
        later = set(result).union(*terms[i + 1 :])
        name, term = _multiply(g, (name, term), (names[i], terms[i]), later)
    name, term = _sum_letters(g, name, term, set(result))
    return _permute_to(g, name, term, result)


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; dots stand for all other dimensions."""
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


def _take_diagonals(g: Lowering, names: list[str], i: int, term: str) -> str:
    """Take the diagonal for a letter that an operand has twice."""
    while len(set(term)) != len(term):
        twin = next(c for c in term if term.count(c) > 1)
        a = term.index(twin)
        b = term.index(twin, a + 1)
        names[i] = constants.diagonal(g, names[i], 0, a, b)
        term = "".join(c for j, c in enumerate(term) if j not in (a, b)) + twin
    return term


def _sum_letters(g: Lowering, name: str, term: str, kept: set[str]) -> tuple[str, str]:
    gone = tuple(i for i, c in enumerate(term) if c not in kept)
    if not gone:
        return name, term
    return g.b.add(Sum(gone, False), name), "".join(c for c in term if c in kept)


def _multiply(g: Lowering, left: tuple[str, str], right: tuple[str, str], later: set[str]) -> tuple[str, str]:
    """Compute a product of matrices: shared letters that stay are the batch, those that go are summed over. A constant
    becomes the right operand, where it is the weight of a linear layer."""
    if g[left[0]].data is not None and g[right[0]].data is None:
        left, right = right, left
    a, ta = _sum_letters(g, *left, later | set(right[1]))
    b, tb = _sum_letters(g, *right, later | set(ta))
    sizes: dict[str, int] = {}
    for term, shape in ((ta, g.shape(a)), (tb, g.shape(b))):
        for c, n in zip(term, shape, strict=True):
            sizes[c] = max(n, sizes.get(c, 1))
    both = [c for c in ta if c in tb]
    batch, inner = [c for c in both if c in later], [c for c in both if c not in later]
    rows, columns = [c for c in ta if c not in both], [c for c in tb if c not in both]
    if any(g.shape(n)[t.index(c)] != sizes[c] for n, t in ((a, ta), (b, tb)) for c in both):
        raise CompileError("Einsum: dimensions of 1 that stand for more are not supported", have=f"{g[a]}, {g[b]}")
    ordered_a = _permute_to(g, a, ta, "".join((*batch, *rows, *inner)))
    ordered_b = _permute_to(g, b, tb, "".join((*batch, *inner, *columns)))
    m, k, n = (prod(sizes[c] for c in some) for some in (rows, inner, columns))
    outer = [sizes[c] for c in batch]
    y = matmul(g, g.reshape(ordered_a, (*outer, m, k)), g.reshape(ordered_b, (*outer, k, n)))
    term = "".join((*batch, *rows, *columns))
    return g.reshape(y, [sizes[c] for c in term]), term


def _permute_to(g: Lowering, name: str, term: str, wanted: str) -> str:
    if sorted(term) != sorted(wanted):
        raise CompileError(f"Einsum: the result has letters {wanted!r}, and there are {term!r}")
    dims = tuple(term.index(c) for c in wanted)
    return name if dims == tuple(range(len(dims))) else g.permute(name, dims)

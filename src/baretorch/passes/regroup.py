"""Reshape a permuted value by reshaping the value underneath.

A reshape splits and merges neighbouring dimensions. Cut into the smallest groups of dimensions that correspond, it can
be applied to the value underneath a permutation, group by group: at no cost if each group is contiguous there, else
after one permutation that makes the groups contiguous and keeps their order in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from baretorch.ir.graph import Shape

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Regrouped:
    """permute(base, dims) reshaped = permute(reshape(permute(base, order), shape), out)."""

    order: Sizes
    shape: Shape
    out: Sizes
    groups: tuple[Sizes, ...]  # per dimension of `shape`, the dimensions of base it is made of; () if it is part of one

    @property
    def free(self) -> bool:
        """Report whether nothing moves in memory."""
        return self.order == tuple(range(len(self.order)))


def regroup(base: Shape, dims: Sizes, to: Shape) -> Regrouped | None:
    """Return how permute(base, dims) becomes shape `to`; None for a value without elements."""
    shape = tuple(base[d] for d in dims)
    if prod(shape) == 0:
        return None
    groups = _groups(shape, to)
    places = [[dims[i] for i in have] for have, _ in groups]  # in the base
    keys = [next((p for p in at if base[p] != 1), at[0]) if at else -1 for at in places]
    for i in reversed(range(len(keys))):  # a new dimension of 1 precedes the next one
        keys[i] = (keys[i + 1] if i + 1 < len(keys) else len(base)) if keys[i] < 0 else keys[i]
    sequence = sorted(range(len(groups)), key=lambda i: keys[i])
    moved = [p for i in sequence for p in places[i] if base[p] != 1]
    rest = iter(moved)
    order = tuple(p if base[p] == 1 else next(rest) for p in range(len(base)))
    made = [j for i in sequence for j in groups[i][1]]
    whole = {j: tuple(places[i]) for i in sequence for j in groups[i][1] if len(groups[i][1]) == 1}
    return Regrouped(
        order,
        tuple(to[j] for j in made),
        tuple(made.index(j) for j in range(len(to))),
        tuple(whole.get(j, ()) for j in made),
    )


def _groups(a: Shape, b: Shape) -> list[tuple[list[int], list[int]]]:
    """Return the smallest runs of dimensions of a and b with the same number of elements. A 1 without counterpart is a
    run by itself."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = a[i : i + 1], b[j : j + 1]
        if left != right and left == (1,):
            groups.append(([i], []))
            i += 1
        elif left != right and right == (1,):
            groups.append(([], [j]))
            j += 1
        else:
            have, want = [i], [j]
            i, j = i + 1, j + 1
            while prod(a[k] for k in have) != prod(b[k] for k in want):
                if prod(a[k] for k in have) < prod(b[k] for k in want):
                    have.append(i)
                    i += 1
                else:
                    want.append(j)
                    j += 1
            groups.append((have, want))
    return groups

"""Steps through memory of kernels that read their operands in any order, so that a permutation needs no copy.

An operator has `dims` per operand: it reads the operand permuted by them; () means as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.ir.graph import Op, Shape, Tensor
from baretorch.ops.helpers import strided
from baretorch.ops.helpers.check import need

Dims = tuple[int, ...]


def need_dims(op: Op, dims: Dims, t: Tensor) -> None:
    valid = not dims or sorted(dims) == list(range(len(t.shape)))
    need(valid, op, f"{dims} is not an order of {len(t.shape)} dimensions", [t], "every dimension once")


def permute_shape(shape: Shape, dims: Dims) -> Shape:
    return tuple(shape[d] for d in dims) if dims else shape


def compose_orders(dims: Dims, then: Dims) -> Dims:
    """Return the order that equals one order followed by another; () means that the order does not change."""
    found = permute_shape(dims or tuple(range(len(then))), then)
    return () if found == tuple(range(len(found))) else found


def permuted_steps(shape: Shape, dims: Dims) -> Dims:
    """Return the strides, in elements, of each dimension of the permuted operand."""
    return permute_shape(strided.steps(shape), dims)


def steps_into(shape: Shape, dims: Dims) -> Dims:
    """Return the `steps` of a result of this shape that is stored permuted."""
    if not dims:
        return permuted_steps(shape, ())
    stored = permuted_steps(permute_shape(shape, dims), ())
    return tuple(stored[dims.index(i)] for i in range(len(shape)))


def repeat_steps(shape: Shape, step: Dims, over: Shape) -> Dims:
    """Return the steps of an operand that is repeated to the shape `over`: 0 where it is repeated."""
    missing = len(over) - len(shape)
    return (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(shape, step, strict=True))


def nest_loops(counts: Shape, *operands: Dims) -> tuple[list[int], list[list[int]]]:
    """Return the fewest nested loops: their counts, and for each operand its step in each. Loops that continue each
    other are joined."""
    loops: list[tuple[int, Sequence[int]]] = []
    for count, *step in zip(counts, *operands, strict=True):
        if count == 1:
            continue
        if loops and all(outer == count * inner for outer, inner in zip(loops[-1][1], step, strict=True)):
            loops[-1] = (loops[-1][0] * count, step)
        else:
            loops.append((count, step))
    return [count for count, _ in loops], [[step[i] for _, step in loops] for i in range(len(operands))]


def fill_front(values: Sequence[int], length: int, value: int) -> Dims:
    """Return `values` with `value` in front, for a kernel with `length` loops."""
    return (value,) * (length - len(values)) + tuple(values)

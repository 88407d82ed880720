"""Compare indices of equal elements. Two results may differ in which of the equal elements they name.

Two machines that round differently may find another of two nearly equal elements to be the larger one, and int8 makes
equal what float keeps apart. An output that comes directly from an ordering operator is therefore judged by what it
points at. What later layers make of an index is not: they are compared as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, interpret
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.logic import Cast
from baretorch.ops.move import Slice
from baretorch.ops.scan import ArgMax, Chosen, TopK

ROUNDING = 1e-4  # of the largest number: elements that are as near as this may be equal but for rounding

WIDE = (DType.INT32, DType.INT64, DType.FLOAT32)  # types that hold an index as it is


@dataclass(frozen=True)
class Indices:
    """An output with indices: the operator that sorts, and the nodes that only move its indices, in their order."""

    ordering: Node
    moves: tuple[Node, ...]


def indices_of(graph: Graph, output: str) -> Indices | None:
    """Find the operator whose indices an output is; None if it is something else."""
    producer, moves = graph.producer(), list[Node]()
    node = producer.get(output)
    while node is not None and _only_moves(node):
        moves.insert(0, node)
        output = node.inputs[0]
        node = producer.get(output)
    ordering = node is not None and isinstance(node.op, (ArgMax, TopK, Chosen)) and node.outputs[-1] == output
    return Indices(node, tuple(moves)) if node is not None and ordering else None


def _only_moves(node: Node) -> bool:
    op = node.op
    return op.target in WIDE if isinstance(op, Cast) else isinstance(op, (Reshape, Permute, Slice))


def replace_tied_indices(
    graph: Graph, inputs: Sequence[Array], have: Sequence[Array], want: Sequence[Array]
) -> tuple[Array, ...]:
    """Return the outputs `have` with the index of `want` wherever both point at equal elements.

    Inputs and outputs are as the graph has them in memory. The elements are those of the interpreted graph. Outputs
    of a model with state stay as they are, because its elements depend on what it remembers."""
    if graph.state:
        return tuple(have)
    differ = [a.shape == b.shape and not np.array_equal(a, b) for a, b in zip(have, want, strict=True)]
    found = [indices_of(graph, name) if d else None for name, d in zip(graph.outputs, differ, strict=True)]
    if not any(found):
        return tuple(have)
    with np.errstate(all="ignore"):
        values = interpret(graph, inputs, keep=True)
    made = zip(found, have, want, strict=True)
    return tuple(a if f is None else _replace_tied(graph, f, values[f.ordering.inputs[0]], a, b) for f, a, b in made)


def _replace_tied(graph: Graph, found: Indices, x: Array, have: Array, want: Array) -> Array:
    """Return `have` with the indices of `want` where both name equal elements. All of `have` stays if it names an
    element more often than `want` does."""
    table, rows = _rows(graph, found, x)
    length = table.shape[-1]
    inside = (have >= 0) & (have < length) & (want >= 0) & (want < length)
    mine, other = (np.where(inside, index, 0).astype(np.int64) for index in (have, want))
    if len(set(zip(rows.flat, mine.flat, strict=True))) < len(set(zip(rows.flat, other.flat, strict=True))):
        return have
    a, b = table[rows, mine], table[rows, other]
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= ROUNDING * np.abs(table[np.isfinite(table)]).max(initial=0)
    equal = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    return np.where(inside & equal, want, have)


def _rows(graph: Graph, found: Indices, x: Array) -> tuple[Array, Array]:
    """Return the ordered elements row by row, and for each number of the output its row."""
    op = found.ordering.op
    assert isinstance(op, (ArgMax, TopK, Chosen))
    along = np.moveaxis(x.astype(np.float64), op.axis, -1)
    table = along.reshape(-1, along.shape[-1])
    rows = np.arange(len(table)).reshape(along.shape[:-1])
    shape = graph[found.ordering.outputs[-1]].shape
    rows = np.broadcast_to(np.expand_dims(rows, op.axis) if len(shape) == x.ndim else rows, shape)
    for node in found.moves:
        if not isinstance(node.op, Cast):
            (rows,) = node.op.reference(rows)
        rows = rows.reshape(graph[node.outputs[0]].shape)
    return table, rows

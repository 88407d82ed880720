"""trees: the votes of decision trees, added up per row.

Each tree compares one feature of a row with a threshold after the other until it reaches a leaf, whose votes count. The
comparison is always `x <= threshold`. It is exact for every float32, because the kernels compare integers in the same
order as the floats (`key_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, pack_inputs
from baretorch.ops.packing.trees import CompactTrees, DoesNotFit, pack_trees

NOT_A_NUMBER = 2**31 - 1  # the key of NaN
UNREACHED = -(2**31)  # a threshold that no key reaches
AGGREGATES = ("sum", "min", "max")
TABLES = ("nodes", "roots", "starts", "places", "votes")


def key_of(x: Array) -> Array:
    """Return int32 keys that are in the same order as these float32 numbers. Both zeros have one key, NaN the
    largest."""
    bits = np.asarray(x, np.float32).view(np.int32).astype(np.int64)
    return np.where(np.isnan(x), NOT_A_NUMBER, np.where(bits < 0, -(2**31) - bits, bits)).astype(np.int32)


@dataclass(frozen=True)
class Trees(Op, name="trees", carried=slice(0), values=slice(1)):
    """x[N, F], and constants -> y[N, targets], the sum (or the minimum or maximum) of the votes of all trees, in their
    order. A target without votes is 0.

    nodes[n, 4]: twice the feature (plus 1 if NaN counts as below), the key of the threshold, and what follows if the
    feature is at most the threshold, and if not: a node, or ~leaf
    roots[T]: each tree's first node, or ~leaf
    starts[L + 1]: leaf l has the votes starts[l] to starts[l + 1]
    places[V], votes[V]: the target of each vote, and its number."""

    targets: int
    aggregate: str = "sum"

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, nodes, roots, starts, places, votes = inputs
        need(x.dtype is DType.FLOAT32 and len(x.shape) == 2, self, "the input is not rows", inputs[:1], "float32[N, F]")
        need(self.aggregate in AGGREGATES, self, f"{self.aggregate} is not supported", (), ", ".join(AGGREGATES))
        tables = (nodes, roots, starts, places, votes)
        types = (*(DType.INT32,) * 4, DType.FLOAT32)
        fits = len(nodes.shape) == 2 and nodes.shape[1] == 4 and places.shape == votes.shape
        fits &= all(t.data is not None and t.dtype is d for t, d in zip(tables, types, strict=True))
        need(fits, self, "the trees are not constants of the right shapes", tables, "nodes[n, 4], roots, starts, …")
        return (Signature((x.shape[0], self.targets), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, nodes, roots, starts, places, votes = inputs
        keys, rows = key_of(x), np.arange(x.shape[0])
        y = np.full((x.shape[0], self.targets), self.start, np.float32)
        add = {"sum": np.add, "min": np.minimum, "max": np.maximum}[self.aggregate]
        for root in roots:
            at = np.full(x.shape[0], root, np.int64)
            while (inside := at >= 0).any():
                feature, threshold, below, above = nodes[at[inside]].T
                key = keys[rows[inside], feature >> 1]
                least = (key <= threshold) | ((key == NOT_A_NUMBER) & (feature & 1 > 0))
                at[inside] = np.where(least, below, above)
            first, last = starts[~at], starts[~at + 1]
            for i in range(int((last - first).max(initial=0))):
                some = first + i < last
                vote = first[some] + i
                with np.errstate(all="ignore"):
                    y[rows[some], places[vote]] = add(y[rows[some], places[vote]], votes[vote])
        return (np.where(y == self.start, np.float32(0), y),)

    @property
    def start(self) -> float:
        """Return the value of a target before any vote."""
        return {"sum": 0.0, "min": np.inf, "max": -np.inf}[self.aggregate]


def _params(call: Call[Trees]) -> Params:
    rows, features = call.x.shape
    fields = {
        "rows": rows,
        "features": features,
        "targets": call.op.targets,
        "trees": call.inputs[2].count,
        "aggregate": AGGREGATES.index(call.op.aggregate),
    }
    return Params("bt_trees_f32", tuple(fields.items()))


@lru_cache(maxsize=8)
def _compact(call: Call[Trees]) -> CompactTrees | None:
    """Return the trees in units of 16 bits if they fit."""
    nodes, roots, starts, places, votes = (t.numbers for t in call.inputs[1:])
    if call.op.aggregate != "sum":
        return None
    try:
        return pack_trees(call.x.shape[1], nodes, roots, starts, places, votes)
    except DoesNotFit:
        return None


def _need_compact(call: Call[Trees]) -> CompactTrees:
    trees = _compact(call)
    assert trees is not None, "the kernel does not fit"
    return trees


def _compact_params(call: Call[Trees]) -> Params:
    trees = _need_compact(call)
    fields = (*_params(call).fields[:-1], ("shift", trees.shift), ("vote_bits", trees.vote_bits))
    fields = (*fields, ("has_signs", int((call.inputs[1].numbers[:, 1] < 0).any())))
    return Params("bt_trees_compact_f32", fields)


def _compact_pack(call: Call[Trees]) -> tuple[Packed, ...]:
    trees = _need_compact(call)
    return tuple(Packed(role, getattr(trees, role)) for role in ("nodes", "roots", "votes"))


KERNELS: tuple[Kernel[Trees], ...] = (
    Kernel(
        "bt_trees_f32_compact",
        "trees/compact.c",
        _compact_params,
        fits=lambda call: _compact(call) is not None,
        pack=_compact_pack,
        scratch=lambda call: 4 * call.x.shape[1],
    ),
    Kernel("bt_trees_f32_ref", "trees/ref.c", _params, pack=lambda call: pack_inputs(call, *TABLES)),
)

"""Rows of the ONNX table: trees and forests of the domain ai.onnx.ml (`classic.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.lowering import Lowering, Result
from baretorch.frontends.onnx.call import ML, OnnxCall, key
from baretorch.frontends.onnx.classic import TRANSFORMS, above, best, both, constant, floats, labels_of, pick, transform
from baretorch.frontends.onnx.forest import Forest, Vote, read_ensemble, read_nodes
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ops.elementwise import Add, Div, Mul
from baretorch.ops.logic import Where
from baretorch.ops.trees import AGGREGATES, Trees


def _trees(
    g: OnnxLowering, op: str, x: str, forest: Forest, targets: int, aggregate: str = "SUM", ones: bool = False
) -> str:
    """Add the operator; with `ones`, each vote is 1."""
    if aggregate not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise CompileError(f"{op}: aggregate_function {aggregate!r} is not supported", need="SUM, AVERAGE, MIN or MAX")
    if not 0 < targets <= 1 << 24:
        raise CompileError(f"{op}: {targets} targets are not supported")
    if not forest.roots:
        raise CompileError(f"{op}: there are no trees")
    total = aggregate.lower() if aggregate.lower() in AGGREGATES else "sum"
    tables = forest.tables(op, g.shape(x)[1], targets, ones or total != "sum")
    if ones:
        tables["votes"] = np.ones_like(tables["votes"])
    y = g.b.add(Trees(targets, total), x, *(g.b.const(name, data) for name, data in tables.items()))
    return g.b.add(Div(), y, g.operand(float(len(forest.roots)), y)) if aggregate == "AVERAGE" else y


def _has_votes(g: OnnxLowering, call: OnnxCall, x: str, forest: Forest, targets: int) -> str:
    """Report which targets get any vote."""
    return above(g, _trees(g, call.op, x, forest, targets, ones=True), 0.0)


def _with_base(g: Lowering, y: str, base: Sequence[float]) -> str:
    """Add what every row starts with."""
    return g.b.add(Add(), y, constant(g, "base", base)) if len(base) and any(base) else y


def tree_regressor(g: OnnxLowering, call: OnnxCall) -> str:
    x, a = floats(g, call.need(0)), call.attributes
    targets = int(a.get("n_targets", 1))
    forest = read_nodes(call.op, a, "target")
    return _regression(g, call, x, forest, targets, a.get("aggregate_function", "SUM"), a.get("post_transform", "NONE"))


def _regression(
    g: OnnxLowering, call: OnnxCall, x: str, forest: Forest, targets: int, aggregate: str, kind: str
) -> str:
    if targets == 1:  # onnxruntime reads the first vote of a leaf, and knows one transform
        forest.leaves = [votes[:1] for votes in forest.leaves]
        kind = kind if kind == "PROBIT" else "NONE"
    base = call.attribute("base_values", ())
    if len(base) not in (0, 1, targets):
        raise CompileError(f"{call.op}: base_values has {len(base)} numbers", need=f"{targets}")
    y = _trees(g, call.op, x, forest, targets, aggregate)
    based = _with_base(g, y, base if len(base) == targets else ())
    if based != y and targets > 1 and not _votes_for_every(forest, targets):  # targets without votes stay 0
        based = g.b.add(Where(), _has_votes(g, call, x, forest, targets), based, g.operand(0.0, y))
    return transform(g, call.op, based, kind)


def tree_ensemble(g: OnnxLowering, call: OnnxCall) -> str:
    x, a = floats(g, call.need(0)), call.attributes
    aggregate, kind = a.get("aggregate_function", 1), a.get("post_transform", 0)
    if not (0 <= aggregate < 4 and 0 <= kind < len(TRANSFORMS)):
        raise CompileError("TreeEnsemble: the aggregate function or the transform is not supported")
    name = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate]
    return _regression(g, call, x, read_ensemble(call.op, a), int(a.get("n_targets", 1)), name, TRANSFORMS[kind])


def tree_classifier(g: OnnxLowering, call: OnnxCall) -> Result:
    x, a = floats(g, call.need(0)), call.attributes
    labels = labels_of(call, "classlabels_int64s")
    forest, count = read_nodes(call.op, a, "class"), len(labels)
    kind, base = a.get("post_transform", "NONE"), list(a.get("base_values", ()))
    if len(base) not in (0, 1, count):
        raise CompileError(f"{call.op}: base_values has {len(base)} numbers", need=f"{count}")
    votes: list[Vote] = [vote for leaf in forest.leaves for vote in leaf]
    voted = {target for target, _ in votes}
    if count <= 2 and len(voted) == 1:
        return _one_score(g, call, x, forest, labels, base)
    y = _trees(g, call.op, x, forest, count)
    if count == 2:
        if base:
            raise CompileError(f"{call.op}: base_values for two classes with votes each is not supported")
        chosen = pick(g, above(g, shapes.slice_(g, y, 1, 1, 2), 0.0), (0, 1))
        _need_every(call, forest, count)
        return chosen, transform(g, call.op, y, kind)
    y = _with_base(g, y, [*base, *[0.0] * (count - len(base))] if base else ())
    found = y
    if not base and any(w <= 0 for _, w in votes) and not _votes_for_every(forest, count):
        # A class without a vote does not take part, though 0 may be more than what the others have.
        found = g.b.add(Where(), _has_votes(g, call, x, forest, count), y, g.operand(-np.inf, y))
    return best(g, found, labels), transform(g, call.op, y, kind)


def _votes_for_every(forest: Forest, count: int) -> bool:
    """Report whether every leaf votes for every class."""
    return all(len({target for target, _ in votes}) == count for votes in forest.leaves)


def _need_every(call: OnnxCall, forest: Forest, count: int) -> None:
    if not _votes_for_every(forest, count):
        raise CompileError(
            f"{call.op}: some leaves have no vote for a class", need="a vote per class in every leaf of two classes"
        )


def _one_score(
    g: OnnxLowering, call: OnnxCall, x: str, forest: Forest, labels: Sequence[int], base: Sequence[float]
) -> Result:
    """Lower a classifier whose leaves all vote for one class: the score decides between two labels."""
    (only,) = {target for votes in forest.leaves for target, _ in votes}
    weights = [w for votes in forest.leaves for _, w in votes]
    kind = str(call.attribute("post_transform", "NONE"))
    count, positive = len(labels), all(w >= 0 for w in weights)
    if not 0 <= only < count or (only == 1 and base) or (kind == "PROBIT" and count == 2) or len(base) == 2:
        raise CompileError(f"{call.op}: votes for one class with base_values, or PROBIT, are not supported")
    forest.leaves = [[(0, w) for _, w in votes] for votes in forest.leaves]
    s = _with_base(g, _trees(g, call.op, x, forest, 1), base)
    if count == 1:
        return pick(g, above(g, s, 0.0), (0, 1)), transform(g, call.op, s, kind if kind == "PROBIT" else "NONE")
    chosen = pick(g, above(g, s, 0.5 if positive else 0.0), labels)
    if only == 1:
        zero = g.b.add(Mul(), s, g.operand(0.0, s))
        return chosen, transform(g, call.op, shapes.cat(g, [zero, s], 1), kind)
    return chosen, both(g, s, not positive, kind)


_ROWS: Mapping[str, OnnxRow] = {
    "TreeEnsembleClassifier": OnnxRow(tree_classifier),
    "TreeEnsembleRegressor": OnnxRow(tree_regressor),
    "TreeEnsemble": OnnxRow(tree_ensemble),
}
ROWS: dict[str, OnnxRow] = {key(op, ML): row for op, row in _ROWS.items()}

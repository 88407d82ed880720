"""Rows of the ONNX table: linear models and support vectors of the domain ai.onnx.ml, in which skl2onnx writes models
of scikit-learn; and what all rows of that domain share.

Results are onnxruntime's, whose definition of binary classes and of transforms is more precise than ONNX's. Labels that
are texts become their indices before anything else (`classic_model.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index, shapes
from baretorch.frontends.aten.products import linear_layer
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering, Result
from baretorch.frontends.onnx.call import ML, OnnxCall, key, need_room
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import Array, DType
from baretorch.ops.cdist import Cdist
from baretorch.ops.elementwise import Add, Div, Mul, Pow, Sub
from baretorch.ops.functions import Abs, Exp, Log, Neg, Sigmoid, Sign, Sqrt, Tanh
from baretorch.ops.logic import Le, Lt, Where
from baretorch.ops.reduce import Amax, Sum
from baretorch.ops.scan import ArgMax
from baretorch.ops.softmax import Softmax

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def floats(g: Lowering, x: str) -> str:
    """Return an input as rows of float32."""
    shape = g.shape(x)
    if len(shape) not in (1, 2):
        raise CompileError("the input is not rows of features", have=str(g[x]), need="x[N, F] or x[F]")
    return g.reshape(cast(g, x, DType.FLOAT32), shape if len(shape) == 2 else (1, *shape))


def constant(g: Lowering, name: str, values: Any, dtype: type = np.float32) -> str:
    return g.b.const(name, np.asarray(values, dtype))


def numbers_of(call: OnnxCall, name: str, count: int, few: bool = False) -> Array:
    """Return an attribute with this many numbers, or with one number if `few`."""
    values = np.asarray(call.attribute(name, ()), np.float32)
    if values.size != count and not (few and values.size == 1):
        raise CompileError(f"{call.op}: {name} has {values.size} numbers", need=str(count))
    return values


def transform(g: Lowering, op: str, y: str, kind: str) -> str:
    """Apply a post_transform to scores[N, n]."""
    if kind == "NONE":
        return y
    if kind == "SOFTMAX":
        return g.b.add(Softmax(1), y)
    if kind == "LOGISTIC":
        return g.b.add(Sigmoid(), y)
    if kind == "SOFTMAX_ZERO":
        largest, zero = g.b.add(Amax((1,), True), y), g.operand(0.0, y)
        counts = g.b.add(Lt(), g.operand(1e-7, y), g.b.add(Abs(), y))
        e = g.b.add(Exp(), g.b.add(Sub(), y, largest))
        small = g.b.add(Mul(), y, g.b.add(Exp(), g.b.add(Neg(), largest)))
        total = g.b.add(Sum((1,), True), g.b.add(Where(), counts, e, zero))
        return g.b.add(Div(), g.b.add(Where(), counts, e, small), total)
    if kind == "PROBIT":
        return _probit(g, y)
    raise CompileError(f"{op}: post_transform {kind!r} is not supported", need=", ".join(TRANSFORMS))


def _probit(g: Lowering, y: str) -> str:
    """Lower onnxruntime's approximation of the inverse of the normal distribution."""
    x = g.b.add(Sub(), g.b.add(Mul(), y, g.operand(2.0, y)), g.operand(1.0, y))
    log = g.b.add(Log(), g.b.add(Sub(), g.operand(1.0, y), g.b.add(Mul(), x, x)))
    v = g.b.add(Add(), g.b.add(Mul(), log, g.operand(0.5, y)), g.operand(2 / (3.14159 * 0.147), y))
    root = g.b.add(Sqrt(), g.b.add(Sub(), g.b.add(Mul(), v, v), g.b.add(Mul(), log, g.operand(1 / 0.147, y))))
    erf = g.b.add(Mul(), g.b.add(Sign(), x), g.b.add(Sqrt(), g.b.add(Sub(), root, v)))
    return g.b.add(Mul(), erf, g.operand(1.41421356, y))


def labels_of(call: OnnxCall, name: str) -> list[int]:
    labels = list(call.attribute(name, ()))
    if not labels:
        raise CompileError(f"{call.op}: {name} is missing", need="a label per class")
    return labels


def label(g: Lowering, at: str, labels: Sequence[int]) -> str:
    """Return the labels of classes by index."""
    if list(labels) == [*range(len(labels))]:
        return at
    return index.select_rows(g, constant(g, "labels", labels, np.int64), 0, at)


def best(g: Lowering, scores: str, labels: Sequence[int]) -> str:
    """Return the label of the largest score; the first of equal ones."""
    return label(g, g.b.add(ArgMax(1, False), scores), labels)


def above(g: Lowering, x: str, limit: float) -> str:
    return g.b.add(Lt(), g.operand(limit, x), x)


def pick(g: Lowering, condition: str, labels: Sequence[int]) -> str:
    """Return the second label where the condition[N, 1] holds, else the first."""
    no, yes = (constant(g, "label", n, np.int64) for n in labels)
    return g.reshape(g.b.add(Where(), condition, yes, no), (g.shape(condition)[0],))


def both(g: Lowering, score: str, signed: bool, kind: str) -> str:
    """Return the scores of two classes from that of the second: [-s, s], or [1 - s, s], or their sigmoids."""
    if kind == "LOGISTIC":
        return g.b.add(Sigmoid(), both(g, score, True, "NONE"))
    other = g.b.add(Neg(), score) if signed else g.b.add(Sub(), g.operand(1.0, score), score)
    return shapes.cat(g, [other, score], 1)


# --- linear models and support vectors ----------------------------------------------------------------------


def _layer(g: OnnxLowering, call: OnnxCall, x: str, targets: int, bias: Array | None) -> str:
    features = g.shape(x)[1]
    need_room(call.op, max(targets, 0), features)
    weight = numbers_of(call, "coefficients", targets * features).reshape(targets, features)
    return linear_layer(g, x, constant(g, "weight", weight), None if bias is None else constant(g, "bias", bias))


def linear_regressor(g: OnnxLowering, call: OnnxCall) -> str:
    x, targets = floats(g, call.need(0)), int(call.attribute("targets", 1))
    intercepts = np.asarray(call.attribute("intercepts", ()), np.float32)
    y = _layer(g, call, x, targets, intercepts if intercepts.size == targets else None)
    return _transform_rows(g, call, y)


def _transform_rows(g: OnnxLowering, call: OnnxCall, y: str) -> str:
    """Apply post_transform as onnxruntime does: to a single score only PROBIT."""
    kind = str(call.attribute("post_transform", "NONE"))
    return transform(g, call.op, y, "NONE" if g.shape(y)[1] == 1 and kind != "PROBIT" else kind)


def linear_classifier(g: OnnxLowering, call: OnnxCall) -> Result:
    x, labels = floats(g, call.need(0)), labels_of(call, "classlabels_ints")
    intercepts = np.asarray(call.attribute("intercepts", ()), np.float32)
    count = intercepts.size
    if count not in (1, len(labels)):
        raise CompileError(f"{call.op}: {count} intercepts for {len(labels)} classes")
    y = _layer(g, call, x, count, intercepts)
    if count > 1:
        return best(g, y, labels), _transform_rows(g, call, y)
    chosen = pick(g, above(g, y, 0.0), labels if len(labels) == 2 else (0, 1))
    kind = str(call.attribute("post_transform", "NONE"))
    if len(labels) == 2 and kind != "PROBIT":
        return chosen, both(g, y, False, kind)
    return chosen, _transform_rows(g, call, y)


def _products(g: OnnxLowering, call: OnnxCall, x: str, count: int) -> str:
    """Return the kernel function of each row and each of `count` support vectors."""
    features = g.shape(x)[1]
    need_room(call.op, count, features)
    vectors = numbers_of(call, "support_vectors", count * features).reshape(count, features)
    kind = str(call.attribute("kernel_type", "LINEAR"))
    if kind == "LINEAR":
        return linear_layer(g, x, constant(g, "vectors", vectors))
    gamma, start, degree = map(float, numbers_of(call, "kernel_params", 3))
    if kind == "RBF":
        d = g.b.add(Cdist(2.0), x, constant(g, "vectors", vectors))
        return g.b.add(Exp(), g.b.add(Mul(), g.b.add(Mul(), d, d), g.operand(-gamma, d)))
    if kind not in ("POLY", "SIGMOID"):
        raise CompileError(f"{call.op}: kernel_type {kind!r} is not supported", need="LINEAR, POLY, RBF or SIGMOID")
    bias = constant(g, "bias", np.full(count, start))
    y = linear_layer(g, x, constant(g, "vectors", vectors * np.float32(gamma)), bias)
    if kind == "SIGMOID":
        return g.b.add(Tanh(), y)
    if degree in (2.0, 3.0):
        square = g.b.add(Mul(), y, y)
        return square if degree == 2.0 else g.b.add(Mul(), square, y)
    return g.b.add(Pow(), y, g.operand(degree, y))


def svm_regressor(g: OnnxLowering, call: OnnxCall) -> str:
    x, count = floats(g, call.need(0)), int(call.attribute("n_supports", 0))
    rho = np.asarray(call.attribute("rho", ()), np.float32)[:1]
    if rho.size != 1:
        raise CompileError("SVMRegressor: rho is missing")
    if count > 0:
        weight = numbers_of(call, "coefficients", count).reshape(1, count)
        y = linear_layer(g, _products(g, call, x, count), constant(g, "weight", weight), constant(g, "rho", rho))
    else:
        y = _layer(g, call, x, 1, rho)
    if not call.attribute("one_class", 0):
        return y
    return g.b.add(Where(), above(g, y, 0.0), g.operand(1.0, y), g.operand(-1.0, y))


def svm_classifier(g: OnnxLowering, call: OnnxCall) -> Result:
    x, labels = floats(g, call.need(0)), labels_of(call, "classlabels_ints")
    if call.attribute("prob_a") or call.attribute("prob_b"):
        raise CompileError(
            f"{call.op}: probabilities of support vectors are not supported: they take an iteration per row",
            try_="train with probability=False; the label and the decision function are supported",
        )
    per_class = [int(n) for n in call.attribute("vectors_per_class", ())]
    rho = np.asarray(call.attribute("rho", ()), np.float32)
    count, kind = len(labels), str(call.attribute("post_transform", "NONE"))
    if not sum(per_class):
        return _linear_svm(g, call, x, labels, rho)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if len(per_class) != count or min(per_class) < 0 or count < 2 or rho.size != len(pairs):
        raise CompileError(
            f"{call.op}: the attributes do not fit together",
            have=f"{count} labels, {len(per_class)} vectors_per_class, {rho.size} rho",
            need="a number of vectors per class, and a rho per pair of classes",
        )
    total = sum(per_class)
    products = _products(g, call, x, total)
    table = numbers_of(call, "coefficients", (count - 1) * total).reshape(count - 1, total)
    starts = np.cumsum([0, *per_class])
    if count == 2:
        y = linear_layer(g, products, constant(g, "weight", table), constant(g, "rho", rho))
    else:
        y = _pairs(g, products, table, starts, pairs, rho)
    # Each pair votes for one of its classes: +1 for the first, or 1 - that for the second.
    sides = np.array([[(n == i) - (n == j) for i, j in pairs] for n in range(count)], np.float32)
    won = cast(g, above(g, y, 0.0), DType.FLOAT32)
    votes = linear_layer(g, won, constant(g, "sides", sides), constant(g, "losses", np.arange(count)))
    if count > 2:
        return best(g, votes, labels), transform(g, call.op, y, kind)
    if kind == "PROBIT":
        raise CompileError(f"{call.op}: PROBIT for two classes is not supported")
    return best(g, votes, labels), both(g, y, kind == "NONE", kind)


def _pairs(
    g: Lowering, products: str, table: Array, starts: Array, pairs: Sequence[tuple[int, int]], rho: Array
) -> str:
    """Return the decision value for each pair of classes: the sum over the support vectors of both classes, plus
    rho."""
    count = len(starts) - 1
    sums = []
    for i in range(count):
        own = shapes.slice_(g, products, 1, int(starts[i]), int(starts[i + 1]))
        sums.append(linear_layer(g, own, constant(g, "weight", table[:, starts[i] : starts[i + 1]])))
    every = shapes.cat(g, sums, 1)  # of class i: i * (count - 1) + the row of the other class
    first = index.take(g, every, 1, np.array([i * (count - 1) + j - 1 for i, j in pairs]))
    second = index.take(g, every, 1, np.array([j * (count - 1) + i for i, j in pairs]))
    return g.b.add(Add(), g.b.add(Add(), first, second), constant(g, "rho", rho))


def _linear_svm(g: OnnxLowering, call: OnnxCall, x: str, labels: Sequence[int], rho: Array) -> Result:
    """Lower a classifier without support vectors: a score per class."""
    if rho.size < 1:
        raise CompileError(f"{call.op}: rho is missing")
    count = len(labels)
    y = _layer(g, call, x, count, np.full(count, rho[0]))
    chosen = best(g, y, labels)
    if count == 2:
        positive = min(call.attribute("coefficients")) >= 0
        largest = g.b.add(Amax((1,), True), y)
        limit = g.operand(0.5, y) if positive else None
        over = g.b.add(Le(), limit, largest) if limit else above(g, largest, 0.0)
        flat = g.reshape(over, (g.shape(y)[0],))
        chosen = g.b.add(Where(), flat, constant(g, "label", labels[1], np.int64), chosen)
    return chosen, _transform_rows(g, call, y)


_ROWS: Mapping[str, OnnxRow] = {
    "LinearClassifier": OnnxRow(linear_classifier),
    "LinearRegressor": OnnxRow(linear_regressor),
    "SVMClassifier": OnnxRow(svm_classifier),
    "SVMRegressor": OnnxRow(svm_regressor),
}
ROWS: dict[str, OnnxRow] = {key(op, ML): row for op, row in _ROWS.items()}

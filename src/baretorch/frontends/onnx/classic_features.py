"""Rows of the ONNX table: operators of the domain ai.onnx.ml (`classic.py`) that prepare features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index, shapes
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import ML, OnnxCall, key, need_room
from baretorch.frontends.onnx.classic import above, constant, floats, numbers_of
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.ir.graph import Array, DType
from baretorch.ops.elementwise import Div, Mul, Sub
from baretorch.ops.functions import Abs, Sqrt
from baretorch.ops.layout import Pad
from baretorch.ops.logic import Eq, Where
from baretorch.ops.reduce import Amax, Sum
from baretorch.ops.scan import ArgMax


def scaler(g: OnnxLowering, call: OnnxCall) -> str:
    x = cast(g, call.need(0), DType.FLOAT32)
    features = g.shape(x)[-1]
    y = g.b.add(Sub(), x, constant(g, "offset", numbers_of(call, "offset", features, few=True)))
    return g.b.add(Mul(), y, constant(g, "scale", numbers_of(call, "scale", features, few=True)))


def normalizer(g: OnnxLowering, x: str, *, norm: str = "MAX") -> str:
    """Lower Normalizer; a row of zeros stays as it is."""
    shape = g.shape(x)
    x = floats(g, x)
    if norm not in ("MAX", "L1", "L2"):
        raise CompileError(f"Normalizer: norm {norm!r} is not supported", need="MAX, L1 or L2")
    if norm == "MAX":
        size = g.b.add(Amax((1,), True), x)
    elif norm == "L1":
        size = g.b.add(Sum((1,), True), g.b.add(Abs(), x))
    else:
        size = g.b.add(Sqrt(), g.b.add(Sum((1,), True), g.b.add(Mul(), x, x)))
    none = g.b.add(Eq(), size, g.operand(0.0, size))
    return g.reshape(g.b.add(Div(), x, g.b.add(Where(), none, g.operand(1.0, size), size)), shape)


def imputer(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    kind = "float" if g[x].dtype is DType.FLOAT32 else "int64"
    values = np.asarray(call.attribute(f"imputed_value_{kind}s", ()), g[x].dtype.numpy)
    if values.size not in (1, g.shape(x)[-1]):
        raise CompileError(f"Imputer: imputed_value_{kind}s has {values.size} numbers", need=f"{g.shape(x)[-1]}")
    replaced = call.attribute(f"replaced_value_{kind}", 0)
    values_ = g.b.const("imputed", values)
    if np.isnan(replaced):
        return g.b.add(Where(), g.b.add(Eq(), x, x), x, values_)
    return g.b.add(Where(), g.b.add(Eq(), x, g.operand(replaced, x)), values_, x)


def binarizer(g: OnnxLowering, x: str, *, threshold: float = 0.0) -> str:
    return cast(g, above(g, cast(g, x, DType.FLOAT32), threshold), DType.FLOAT32)


def extract(g: OnnxLowering, x: str, indices: str) -> str:
    """Lower ArrayFeatureExtractor: entries of the last axis."""
    shape = g.shape(x)
    rows = g.reshape(x, (1, *shape) if len(shape) == 1 else shape)
    return index.select_rows(g, rows, len(g.shape(rows)) - 1, g.reshape(indices, (g[indices].count,)))


def vectorizer(g: OnnxLowering, call: OnnxCall) -> str:
    rows = [floats(g, call.need(i)) for i in range(len(call.inputs))]
    sizes = tuple(call.attribute("inputdimensions", ()))
    if sizes != tuple(g.shape(x)[1] for x in rows):
        raise CompileError(f"FeatureVectorizer: inputdimensions is {list(sizes)}", need="the features of each input")
    return shapes.cat(g, rows, 1)


def _equal_to(g: Lowering, op: str, x: str, keys: Array) -> str:
    """Compare each element with all keys: bool[.., K]."""
    need_room(op, g[x].count, keys.size)
    return g.b.add(Eq(), shapes.unsqueeze(g, x, len(g.shape(x))), g.b.const("keys", keys))


def label_encoder(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower LabelEncoder for numbers: the first key that is equal selects the value."""
    x = call.need(0)
    keys, values = (_numbers(call, part) for part in ("keys", "values"))
    if keys.shape != values.shape or not keys.size:
        raise CompileError(f"LabelEncoder: {keys.size} keys for {values.size} values", need="numbers, a value per key")
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        raise CompileError("LabelEncoder: NaN is not supported as a key")
    dtype = g[x].dtype.numpy
    equal = cast(g, _equal_to(g, call.op, x, keys.astype(dtype)), DType.INT32)
    rank = len(g.shape(equal))
    padded = g.b.add(Pad((*((0, 0),) * (rank - 1), (0, 1)), 1.0), equal)
    table = g.b.const("values", np.append(values, np.asarray(_default(call, values), values.dtype)))
    return index.select_rows(g, table, 0, g.b.add(ArgMax(rank - 1, False), padded))


def _numbers(call: OnnxCall, part: str) -> Array:
    for name, dtype in ((f"{part}_int64s", np.int64), (f"{part}_floats", np.float32), (f"{part}_tensor", None)):
        found = call.attribute(name)
        if found is not None and len(found):
            data = np.asarray(found, dtype).reshape(-1)
            return data.astype(np.float32) if data.dtype == np.float64 else data
    raise CompileError(f"LabelEncoder: {part} are not numbers", need=f"{part}_int64s or {part}_floats")


def _default(call: OnnxCall, values: Array) -> Any:
    """Return the value of what equals no key."""
    tensor = call.attribute("default_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)[0]
    if values.dtype.kind == "f":
        return call.attribute("default_float", -0.0)
    return call.attribute("default_int64", -1)


def one_hot_encoder(g: OnnxLowering, call: OnnxCall) -> str:
    classes = np.asarray(call.attribute("cats_int64s", ()), np.int64)
    if not classes.size:
        raise CompileError("OneHotEncoder: cats_int64s is missing", need="categories that are numbers")
    if not call.attribute("zeros", 1):
        g.note("OneHotEncoder: an unknown category gives zeros, where onnxruntime reports an error")
    x = cast(g, call.need(0), DType.INT64)
    return cast(g, _equal_to(g, call.op, x, classes), DType.FLOAT32)


_ROWS: Mapping[str, OnnxRow] = {
    "Scaler": OnnxRow(scaler),
    "Normalizer": row(normalizer),
    "Imputer": OnnxRow(imputer),
    "Binarizer": row(binarizer),
    "ArrayFeatureExtractor": row(extract),
    "FeatureVectorizer": OnnxRow(vectorizer),
    "LabelEncoder": OnnxRow(label_encoder),
    "OneHotEncoder": OnnxRow(one_hot_encoder),
}
ROWS: dict[str, OnnxRow] = {key(op, ML): row for op, row in _ROWS.items()}

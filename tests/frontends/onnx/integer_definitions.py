"""Integer networks computed as their operators are published: by QuantLib, and where that differs by Deeploy.

It is independent of Baretorch's: numbers are exact, and rounding is that of fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor, isqrt
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Attributes = Mapping[str, Any]


def each(function: Callable[..., int], *arrays: Any) -> Array:
    """Apply a function of whole numbers to each element."""
    return np.vectorize(lambda *v: int(function(*map(int, v))), otypes=[np.int64])(*arrays)


def by_row(function: Callable[[list[int]], list[int]], x: Array) -> Array:
    return np.array([function([int(v) for v in row]) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape)


def clip(v: int, a: Attributes, signed: bool = True) -> int:
    n = int(a["n_levels_out"] if "n_levels_out" in a else a["n_levels"])
    return min(max(v, -(n // 2)), n // 2 - 1) if signed else min(max(v, 0), n - 1)


def requant_shift(a: Attributes, x: Array, mul: Array, add: Array) -> Array:
    def shape(v: Array) -> Array:
        """One number per channel, if it does not broadcast, is that of dimension 1."""
        try:
            if np.broadcast_shapes(v.shape, x.shape) == x.shape:
                return v
        except ValueError:
            pass
        return v.reshape(-1, *(1,) * (x.ndim - 2))

    def one(v: int, m: int, b: int) -> int:
        return clip(floor(Fraction(v * m + b, int(a["div"])) + Fraction(1, 2)), a, bool(a["signed"]))

    return each(one, x, shape(mul), shape(add))


def gelu(a: Attributes, x: Array) -> Array:
    def one(v: int) -> int:
        sign = (v > 0) - (v < 0)
        return v * ((a["one"] + sign * (a["one"] - (min(abs(v), -a["b"]) + a["b"]) ** 2)) // 2)

    return each(one, x)


def hardswish(a: Attributes, x: Array) -> Array:
    return each(lambda v: v * min(max(v + a["three"], 0), a["six"]) * a["one_over_six"], x)


def softmax(a: Attributes, x: Array) -> Array:
    def row(v: list[int]) -> list[int]:
        found = []
        for distance in (max(v) - n for n in v):
            z = min(distance // int(a["log2"]), 31)
            p = z * int(a["log2"]) - distance
            found.append(int(a["coeffA"] * (p + a["coeffB"]) ** 2 + a["coeffC"]) // 2**z)
        return [e * (int(a["n_levels"]) - 1) // sum(found) for e in found]

    return by_row(row, x)


def ita_max(a: Attributes, x: Array) -> Array:
    def row(v: list[int]) -> list[int]:
        shifts = [(max(v) - n + 16) // 32 for n in v]
        inverse = 255 * 256 // sum(256 // 2**s for s in shifts)
        return [inverse // 2**s for s in shifts]

    return by_row(row, x)


def ita_partial_max(a: Attributes, x: Array) -> Array:
    def row(v: list[int]) -> list[int]:
        largest, total = -128, 0
        for i in range(0, len(v), a["group_width"]):
            group = v[i : i + a["group_width"]]
            if max(group) > largest:
                total //= 2 ** ((max(group) - largest + 16) // 32)
                largest = max(group)
            total += sum(256 // 2 ** ((largest - n + 16) // 32) for n in group)
        return [127 * 256 // total // 2 ** ((largest - n + 16) // 32) for n in v]

    return by_row(row, x)


def toward_zero(v: Fraction) -> int:
    return floor(v) if v >= 0 else -floor(-v)


def norm(a: Attributes, x: Array, weight: Array, bias: Array | None = None) -> Array:
    def row(v: list[int]) -> list[int]:
        mean = 0 if bias is None else toward_zero(Fraction(sum(v), len(v)))
        deviation = isqrt(sum((n - mean) ** 2 for n in v) // len(v) + 1)
        w, b = (np.broadcast_to(c, (len(v),)) for c in (weight, 0 if bias is None else bias))
        parts = [toward_zero(Fraction((n - mean) * int(w[i]), deviation)) + int(b[i]) for i, n in enumerate(v)]
        return [clip(p // int(a["D"]), a) for p in parts]

    return by_row(row, x)


def divide(a: Attributes, x: Array, y: Array) -> Array:
    def one(v: int, w: int) -> int:
        exact = Fraction(v * a["Delta"] * a["eta"], w * a["eta"] + a["eps"])
        return toward_zero(exact + Fraction(1, 2) if v >= 0 else exact - Fraction(1, 2))

    return each(one, x, y)


def divide_by_constant(a: Attributes, x: Array) -> Array:
    return x * (a["Delta"] * a["eta"] // (a["y"] * a["eta"] + a["eps"]))


def no_norm(a: Attributes, x: Array, weight: Array, bias: Array) -> Array:
    return each(lambda v, w, b: clip((v * w + b) * int(a["mul"]) // int(a["D"]), a), x, weight, bias)


def mean(a: Attributes, x: Array) -> Array:
    count = int(np.prod([x.shape[i] for i in a["axes"]]))

    def one(v: int) -> int:
        exact = Fraction(v, count)
        if count & (count - 1) == 0 or v >= 0:
            return floor(exact + Fraction(1, 2))
        return -floor(-exact + Fraction(1, 2))

    return each(one, x.sum(axis=tuple(a["axes"]), keepdims=bool(a["keepdims"])))


OWN: Mapping[str, Callable[..., Array]] = {
    "RequantShift": requant_shift,
    "iGELU": gelu,
    "iHardswish": hardswish,
    "iSoftmax": softmax,
    "ITAMax": ita_max,
    "ITAPartialMax": ita_partial_max,
    "iLayerNorm": norm,
    "iRMSNorm": norm,
    "iNoNorm": no_norm,
    "IntegerDiv": divide,
    "TrueIntegerDiv": divide_by_constant,
    "IntegerMean": mean,
    "ReduceMean": mean,
}


def compute(made: Any, *inputs: Array) -> list[Array]:
    """Return the outputs of a model as int64. ONNX's own operators are onnx.reference's, in double precision."""
    from onnx.reference import ReferenceEvaluator

    values = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    values |= dict(zip((i.name for i in made.graph.input), inputs, strict=True))
    for n in made.graph.node:
        given = [values[i] for i in n.input]
        attributes = {a.name: plain(helper.get_attribute_value(a)) for a in n.attribute}
        if n.op_type in OWN:
            made_ = [OWN[n.op_type](attributes, *(np.rint(x).astype(np.int64) for x in given))]
        else:
            wide = [x.astype(np.float64) if n.op_type in WIDE or i == 0 else x for i, x in enumerate(given)]
            types = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in wide]
            graph = helper.make_graph(
                [n],
                "one",
                [helper.make_tensor_value_info(*v, None) for v in dict(zip(n.input, types, strict=True)).items()],
                [helper.make_tensor_value_info(o, TensorProto.DOUBLE, None) for o in n.output],
            )
            alone = helper.make_model(graph, opset_imports=[helper.make_opsetid("", made.opset_import[0].version)])
            made_ = ReferenceEvaluator(alone).run(None, dict(zip(n.input, wide, strict=True)))
        values |= dict(zip(n.output, made_, strict=True))
    return [np.rint(values[o.name]).astype(np.int64) for o in made.graph.output]


WIDE = frozenset({"Conv", "MatMul", "Gemm", "Add", "Sub", "Mul", "Concat"})  # all inputs are numbers


def plain(value: Any) -> Any:
    """Return an attribute's value; a tensor with one number is that number."""
    return int(numpy_helper.to_array(value).item()) if isinstance(value, TensorProto) else value

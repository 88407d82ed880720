"""More operators: element by element, products and pictures, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.frontends.tflite_cases import CASES, SAME, VALID, X, Y, both, case, real, with_constants
from tests.frontends.tflite_files import Q, SubgraphWriter

WIDE = Q(0.1, 0)
POSITIVE = Q(0.02, -128)
IMAGE = (1, 4, 4, 3)
__all__ = ["CASES"]  # with those of tflite_cases


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


# --- element by element ---------------------------------------------------------------------------------------

for name in ("RELU", "RELU6", "RELU_N1_TO_1"):
    both(name, IMAGE)
both("RELU_0_TO_1", IMAGE, int8=False)
both("LOGISTIC", IMAGE, None, X, Q(1 / 256, -128), relative=1e-6)
both("TANH", IMAGE, None, X, Q(1 / 128, 0))
both("HARD_SWISH", IMAGE, options="HardSwishOptions")
both("ELU", IMAGE)
both("LEAKY_RELU", IMAGE, options="LeakyReluOptions", alpha=0.1)
both("GELU", IMAGE, options="GeluOptions", relative=2e-6, approximate=False)
both("GELU", IMAGE, options="GeluOptions", kind="_tanh", relative=2e-6, int8=False, approximate=True)
both("ABS", IMAGE, None, X, Q(0.04, -128), "AbsOptions")
both("EXP", IMAGE, None, X, Q(0.6, -128), "ExpOptions", relative=2e-6)
for name in ("NEG", "SIN", "COS", "FLOOR", "CEIL", "ROUND"):
    both(name, IMAGE, int8=False)
both("SIGN", IMAGE, int8=False)
both("SQUARE", IMAGE, int8=False, options="SquareOptions")
both("LOG_SOFTMAX", (2, 7), None, X, Q(16 / 256, 127), "LogSoftmaxOptions")
both("L2_NORMALIZATION", (2, 7), None, X, Q(1 / 128, 0), "L2NormOptions", relative=2e-6)
both("L2_POOL_2D", IMAGE, (1, 2, 2, 3), options="Pool2DOptions", int8=False, relative=2e-6,
     padding=VALID, strideH=2, strideW=2, filterHeight=2, filterWidth=2)  # fmt: skip


def of_positive(name: str) -> Callable[[SubgraphWriter], None]:
    def build(g: SubgraphWriter) -> None:
        squares = g.op(
            "ADD",
            [g.op("ABS", [g.input(IMAGE)], IMAGE, "float32", "AbsOptions"), g.const(np.float32(0.1))],
            IMAGE,
            "float32",
            "AddOptions",
        )
        g.output(g.op(name, [squares], IMAGE))

    return build


for name in ("LOG", "SQRT", "RSQRT"):
    case(name, of_positive(name), relative=2e-6)
case("RSQRT_int8", lambda g: g.output(g.op("RSQRT", [g.input(IMAGE, POSITIVE)], IMAGE, Q(0.05, -128))))


def two(
    name: str,
    dtype: str = "float32",
    to: str = "",
    options: str = "",
    kind: str = "",
    q: Q | None = None,
    y: Q | None = None,
) -> None:
    def build(g: SubgraphWriter) -> None:
        a, b = (g.input((2, 5, 3), q or dtype) for _ in range(2))
        g.output(g.op(name, [a, b], (2, 5, 3), y or to or dtype, options))

    case(f"{name}{kind}", build, relative=2e-6)


two("DIV", options="DivOptions")
two("ATAN2")
two("MAXIMUM", options="MaximumMinimumOptions")
two("MINIMUM", options="MaximumMinimumOptions")
two("MAXIMUM", options="MaximumMinimumOptions", kind="_int8", q=X, y=X)
two("MINIMUM", options="MaximumMinimumOptions", kind="_int8", q=X, y=X)
two("SQUARED_DIFFERENCE", options="SquaredDifferenceOptions")
two("SQUARED_DIFFERENCE", options="SquaredDifferenceOptions", kind="_int8", q=X, y=Q(0.4, -128))
two("SQUARED_DIFFERENCE", options="SquaredDifferenceOptions", kind="_fine_int8", q=X, y=Q(0.02, -120))
two("ADD_N", options="AddNOptions")
for name in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    title = "".join(part.title() for part in name.split("_"))
    two(name, to="bool", options=f"{title}Options")
    two(name, to="bool", options=f"{title}Options", kind="_int8", q=X)
two("LOGICAL_AND", "bool", options="LogicalAndOptions")
two("LOGICAL_OR", "bool", options="LogicalOrOptions")
both_bool = lambda g: g.output(g.op("LOGICAL_NOT", [g.input((2, 3), "bool")], (2, 3), "bool", "LogicalNotOptions"))  # noqa: E731
case("LOGICAL_NOT", both_bool)


def by_constant(name: str, divisor: float | int, dtype: str, options: str) -> Callable[[SubgraphWriter], None]:
    def build(g: SubgraphWriter) -> None:
        g.output(g.op(name, [g.input((2, 5), dtype), g.const(np.array([divisor] * 5, dtype))], (2, 5), dtype, options))

    return build


case("FLOOR_DIV", by_constant("FLOOR_DIV", 3, "int32", "FloorDivOptions"))
case("FLOOR_MOD", by_constant("FLOOR_MOD", 3, "int32", "FloorModOptions"))
case("DIV_int32", by_constant("DIV", 3, "int32", "DivOptions"))
case("POW", by_constant("POW", 2.0, "float32", "PowOptions"), relative=2e-6)


def prelu(g: SubgraphWriter, int8: bool) -> None:
    slopes = np.abs(real(1, 1, 3, scale=0.3))
    slope = g.const(slopes, Q(0.01, 0) if int8 else None)
    g.output(g.op("PRELU", [g.input(IMAGE, X if int8 else "float32"), slope], IMAGE, Y if int8 else "float32"))


case("PRELU", lambda g: prelu(g, False))
case("PRELU_int8", lambda g: prelu(g, True))


def select(g: SubgraphWriter, name: str, q: Q | None, rows: bool = False) -> None:
    condition = g.input((2,) if rows else (2, 3), "bool")
    a, b = (g.input((2, 3), q or "float32") for _ in range(2))
    g.output(
        g.op(
            name, [condition, a, b], (2, 3), q or "float32", "SelectOptions" if name == "SELECT" else "SelectV2Options"
        )
    )


case("SELECT", lambda g: select(g, "SELECT", None))
case("SELECT_rows", lambda g: select(g, "SELECT", None, rows=True))
case("SELECT_V2", lambda g: select(g, "SELECT_V2", None))
case("SELECT_int8", lambda g: select(g, "SELECT", X))
case("SELECT_V2_int8", lambda g: select(g, "SELECT_V2", X))
case(
    "CAST",
    lambda g: g.output(g.op("CAST", [g.input((2, 3))], (2, 3), "int32", "CastOptions", inDataType=0, outDataType=2)),
)
case("QUANTIZE", lambda g: g.output(g.op("QUANTIZE", [g.input((2, 3))], (2, 3), X, "QuantizeOptions")))
case("QUANTIZE_int8", lambda g: g.output(g.op("QUANTIZE", [g.input((2, 30), X)], (2, 30), Y, "QuantizeOptions")))
case("DEQUANTIZE", lambda g: g.output(g.op("DEQUANTIZE", [g.input((2, 3), X)], (2, 3), "float32", "DequantizeOptions")))
with_constants("BROADCAST_TO", (1, 3), [ints(4, 3)], (4, 3), options="BroadcastToOptions")
case(
    "FILL",
    lambda g: g.output(
        g.op(
            "ADD",
            [
                g.input((2, 3)),
                g.op("FILL", [g.const(ints(2, 3)), g.const(np.float32(1.5))], (2, 3), "float32", "FillOptions"),
            ],
            (2, 3),
            "float32",
            "AddOptions",
        )
    ),
)
both("ZEROS_LIKE", (2, 3), int8=False, options="ZerosLikeOptions")

# --- products and pictures ------------------------------------------------------------------------------------


def batch_matmul(g: SubgraphWriter, int8: bool, adj: bool) -> None:
    a = g.input((2, 3, 5), X if int8 else "float32")
    b = g.input((2, 4, 5) if adj else (2, 5, 4), Q(0.03, -4) if int8 else "float32")
    g.output(g.op("BATCH_MATMUL", [a, b], (2, 3, 4), WIDE if int8 else "float32", "BatchMatMulOptions", adjY=adj))


case("BATCH_MATMUL", lambda g: batch_matmul(g, False, True), relative=3e-6)
case("BATCH_MATMUL_int8", lambda g: batch_matmul(g, True, False))


def transpose_conv(g: SubgraphWriter, int8: bool, padding: int) -> None:
    w, size = real(5, 3, 3, 4, scale=0.4), 8 if padding == SAME else 9
    s_w = (np.abs(w).max(axis=(1, 2, 3)) / 127).tolist()
    weight = g.const(w, Q(s_w) if int8 else None)
    inputs = [g.const(ints(1, size, size, 5)), weight, g.input((1, 4, 4, 4), X if int8 else "float32")]
    y = Q(0.06, 4) if int8 else "float32"
    g.output(
        g.op(
            "TRANSPOSE_CONV",
            inputs,
            (1, size, size, 5),
            y,
            "TransposeConvOptions",
            padding=padding,
            strideH=2,
            strideW=2,
        )
    )


case("TRANSPOSE_CONV", lambda g: transpose_conv(g, False, SAME), relative=3e-6)
case("TRANSPOSE_CONV_int8", lambda g: transpose_conv(g, True, SAME))
case("TRANSPOSE_CONV_int8_valid", lambda g: transpose_conv(g, True, VALID))
with_constants(
    "RESIZE_NEAREST_NEIGHBOR",
    (1, 4, 6, 2),
    [ints(2, 7)],
    (1, 2, 7, 2),
    "_both",
    options="ResizeNearestNeighborOptions",
    alignCorners=True,
    halfPixelCenters=True,
)
with_constants(
    "RESIZE_NEAREST_NEIGHBOR",
    (1, 4, 6, 2),
    [ints(2, 7)],
    (1, 2, 7, 2),
    "_between",  # the third of seven lies between two of six
    options="ResizeNearestNeighborOptions",
    alignCorners=True,
)
for kind, values in (("", {}), ("_half", {"halfPixelCenters": True}), ("_aligned", {"alignCorners": True})):
    for name, options in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        with_constants(name, IMAGE, [ints(7, 9)], (1, 7, 9, 3), kind, options=options, **values)

# --- reductions -----------------------------------------------------------------------------------------------

for name in ("MEAN", "SUM"):
    with_constants(name, IMAGE, [ints(1, 2)], (1, 3), y=Y if name == "MEAN" else WIDE, options="ReducerOptions")
with_constants("MEAN", IMAGE, [ints(-1)], (1, 4, 4, 1), "_kept", y=Y, options="ReducerOptions", keepDims=True)
with_constants("REDUCE_MAX", IMAGE, [ints(1, 2)], (1, 3), options="ReducerOptions")
with_constants("REDUCE_MIN", IMAGE, [ints(1, 2)], (1, 3), options="ReducerOptions")
with_constants("REDUCE_PROD", (2, 4), [ints(1)], (2,), x=None, options="ReducerOptions")
with_constants("REDUCE_ANY", (2, 4), [ints(1)], (2,), x=None, options="ReducerOptions", dtype="bool")
with_constants("REDUCE_ALL", (2, 4), [ints(1)], (2,), x=None, options="ReducerOptions", dtype="bool")
for name, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
    with_constants(name, (2, 9), [ints(1)], (2,), x=None, options=options, to="int32", outputType=2)
case(
    "ARG_MAX_of_bytes",
    lambda g: g.output(
        g.op("ARG_MAX", [g.input((2, 9), X), g.const(ints(1))], (2,), "int32", "ArgMaxOptions", outputType=2)
    ),
)
with_constants("CUMSUM", (2, 5), [ints(1)], (2, 5), x=None, options="CumsumOptions")
with_constants(
    "CUMSUM", (2, 5), [ints(1)], (2, 5), "_reverse", x=None, options="CumsumOptions", exclusive=True, reverse=True
)
with_constants("CUMSUM", (2, 5), [ints(0)], (2, 5), "_int32", x=None, options="CumsumOptions", dtype="int32")


def topk(g: SubgraphWriter) -> None:
    values, where = g.tensor("values", (2, 3), "float32"), g.tensor("where", (2, 3), "int32")
    g.add("TOPK_V2", [g.input((2, 9)), g.const(ints(3)[0])], [values, where], "TopKV2Options")
    g.output(values, where)


case("TOPK_V2", topk)

"""The rest of the operators: element by element, reductions, moves, and what remembers something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.frontends.tflite_cases import CASES, RELU, SAME, VALID, X, Y, both, case, real, with_constants
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

# --- moves ----------------------------------------------------------------------------------------------------

both("SQUEEZE", (1, 3, 1, 4), (3, 4), X, X, "SqueezeOptions", squeezeDims=[0, 2])
with_constants("EXPAND_DIMS", (3, 4), [ints(1)], (3, 1, 4), options="ExpandDimsOptions")
with_constants("TRANSPOSE", (2, 3, 4), [ints(2, 0, 1)], (4, 2, 3), options="TransposeOptions")
with_constants("SLICE", (3, 6), [ints(1, 2), ints(2, -1)], (2, 4), options="SliceOptions")
with_constants(
    "STRIDED_SLICE", (4, 6), [ints(1, 5), ints(4, 0), ints(2, -2)], (2, 3), options="StridedSliceOptions", endMask=2
)
with_constants(
    "STRIDED_SLICE",
    (4, 6),
    [ints(-1, 0), ints(0, 0), ints(1, 1)],
    (6,),
    "_one",
    options="StridedSliceOptions",
    shrinkAxisMask=1,
    endMask=2,
)
with_constants(
    "STRIDED_SLICE",
    (4, 6),
    [ints(0, 1, 0), ints(0, 3, 0), ints(1, 1, 1)],
    (1, 2, 6),
    "_new",
    x=None,
    options="StridedSliceOptions",
    newAxisMask=1,
    ellipsisMask=4,
)
with_constants(
    "STRIDED_SLICE",
    (4, 6),
    [ints(2, 1), ints(0, 3), ints(1, 1)],
    (2,),
    "_first",  # the mask of the begin is stronger than its number
    options="StridedSliceOptions",
    shrinkAxisMask=1,
    beginMask=1,
)
with_constants("PAD", IMAGE, [np.array([[0, 0], [1, 2], [2, 0], [0, 0]], np.int32)], (1, 7, 6, 3), options="PadOptions")
with_constants(
    "MIRROR_PAD",
    IMAGE,
    [np.array([[0, 0], [1, 2], [2, 0], [0, 0]], np.int32)],
    (1, 7, 6, 3),
    options="MirrorPadOptions",
    mode=0,
)
with_constants(
    "MIRROR_PAD",
    (4, 3),
    [np.array([[1, 4], [0, 3]], np.int32)],
    (9, 6),
    "_symmetric",
    options="MirrorPadOptions",
    mode=1,
)
both("SPACE_TO_DEPTH", IMAGE, (1, 2, 2, 12), X, X, "SpaceToDepthOptions", blockSize=2)
both("DEPTH_TO_SPACE", (1, 2, 2, 12), IMAGE, X, X, "DepthToSpaceOptions", blockSize=2)
with_constants(
    "SPACE_TO_BATCH_ND",
    IMAGE,
    [ints(2, 2), np.array([[1, 1], [0, 0]], np.int32)],
    (4, 3, 2, 3),
    options="SpaceToBatchNDOptions",
)
with_constants(
    "BATCH_TO_SPACE_ND",
    (4, 3, 2, 3),
    [ints(2, 2), np.array([[1, 1], [0, 0]], np.int32)],
    IMAGE,
    options="BatchToSpaceNDOptions",
)
with_constants("GATHER", (3, 5), [ints(4, 0, 0)], (3, 3), options="GatherOptions", axis=1)
with_constants("GATHER_ND", (3, 5, 2), [np.array([[0, 4], [2, 1]], np.int32)], (2, 2), options="GatherNdOptions")
with_constants("TILE", (2, 3), [ints(2, 2)], (4, 6), options="TileOptions")
with_constants("REVERSE_V2", (2, 3), [ints(1)], (2, 3), options="ReverseV2Options")
case(
    "EMBEDDING_LOOKUP",
    lambda g: g.output(g.op("EMBEDDING_LOOKUP", [g.input((3,), "int32"), g.const(real(4, 5))], (3, 5))),
)


def padv2(g: SubgraphWriter, q: Q | None) -> None:
    sides = g.const(np.array([[0, 0], [1, 2]], np.int32))
    g.output(
        g.op(
            "PADV2",
            [g.input((2, 3), q or "float32"), sides, g.const(np.float32(1.2), q)],
            (2, 6),
            q or "float32",
            "PadV2Options",
        )
    )


case("PADV2", lambda g: padv2(g, None))
case("PADV2_int8", lambda g: padv2(g, X))


def joined(g: SubgraphWriter, name: str, q: Q | None) -> None:
    a, b = (g.input((2, 3), q or "float32") for _ in range(2))
    if name == "PACK":
        g.output(g.op(name, [a, b], (2, 2, 3), q or "float32", "PackOptions", valuesCount=2, axis=1))
    else:
        g.output(g.op(name, [a, b], (2, 6), q or "float32", "ConcatenationOptions", axis=-1))


def parted(g: SubgraphWriter, name: str, q: Q | None) -> None:
    x = g.input((2, 6), q or "float32")
    shapes = {"SPLIT": ((2, 3), (2, 3)), "SPLIT_V": ((2, 1), (2, 5)), "UNPACK": ((6,), (6,))}[name]
    made = [g.tensor(f"part{i}", shape, q.type if q else "float32", q) for i, shape in enumerate(shapes)]
    if name == "SPLIT":
        g.add(name, [g.const(ints(1)[0]), x], made, "SplitOptions", numSplits=2)
    elif name == "SPLIT_V":
        g.add(name, [x, g.const(ints(1, -1)), g.const(ints(1)[0])], made, "SplitVOptions", numSplits=2)
    else:
        g.add(name, [x], made, "UnpackOptions", num=2, axis=0)
    g.output(*made)


for name in ("PACK", "CONCATENATION"):
    case(name, lambda g, name=name: joined(g, name, None))
    case(f"{name}_int8", lambda g, name=name: joined(g, name, X))
for name in ("SPLIT", "SPLIT_V", "UNPACK"):
    case(name, lambda g, name=name: parted(g, name, None))
    case(f"{name}_int8", lambda g, name=name: parted(g, name, X))


def shape_of(g: SubgraphWriter) -> None:
    """As Keras asks for the batch before it reshapes."""
    x = g.input((2, 6))
    sizes = g.op("SHAPE", [x], (2,), "int32", "ShapeOptions", outType=2)
    batch = g.op(
        "STRIDED_SLICE",
        [sizes, g.const(ints(0)), g.const(ints(1)), g.const(ints(1))],
        (),
        "int32",
        "StridedSliceOptions",
        shrinkAxisMask=1,
    )
    shape = g.op(
        "PACK", [batch, g.const(ints(3)[0]), g.const(ints(2)[0])], (3,), "int32", "PackOptions", valuesCount=3, axis=0
    )
    g.output(g.op("RESHAPE", [x, shape], (2, 3, 2), "float32", "ReshapeOptions"))


case("SHAPE", shape_of)


def constants_out(g: SubgraphWriter) -> None:
    """What is given out is a constant, the input as it came, and one tensor twice."""
    x = g.input((2, 3), X)
    y = g.op("RELU", [x], (2, 3), X)
    g.output(y, g.const(real(2, 2), X), x, y)


case("RELU_and_constants_int8", constants_out)

# --- what remembers -------------------------------------------------------------------------------------------


def svdf(g: SubgraphWriter) -> None:
    batch, width, units, rank, memory = 1, 5, 4, 2, 6
    state = g.tensor("state", (batch, units * rank * memory), "float32", variable=True)
    inputs = [
        g.input((batch, width)),
        g.const(real(units * rank, width)),
        g.const(real(units * rank, memory)),
        g.const(real(units)),
        state,
    ]
    g.output(g.op("SVDF", inputs, (batch, units), "float32", "SVDFOptions", rank=rank, fusedActivationFunction=RELU))


case("SVDF", svdf, relative=3e-6)


def svdf_bytes(g: SubgraphWriter) -> None:
    """int8 with 16 bits of memory: computed in float, and still within a step."""
    width, units, rank, memory = 5, 4, 2, 6
    kept = Q(0.002, 0, "int16")
    state = g.tensor("state", (1, units * rank * memory), "int16", kept, variable=True)
    features = g.const(real(units * rank, width, scale=0.4), Q(0.02))
    times = g.const(real(units * rank, memory, scale=0.4), Q(0.0001, 0, "int16"))
    bias = g.const(real(units, scale=0.3), Q(0.002 * 0.0001, 0, "int32"))
    inputs = [g.input((1, width), X), features, times, bias, state]
    g.output(g.op("SVDF", inputs, (1, units), Q(0.03, -128), "SVDFOptions", rank=rank, fusedActivationFunction=RELU))


case("SVDF_bytes", svdf_bytes)


def lstm(g: SubgraphWriter) -> None:
    time, width, units = 4, 3, 5
    gates = [*(g.const(real(units, width)) for _ in range(4)), *(g.const(real(units, units)) for _ in range(4))]
    biases = [g.const(real(units)) for _ in range(4)]
    hidden, cell = (g.tensor(name, (1, units), "float32", variable=True) for name in ("hidden", "cell"))
    inputs = [g.input((1, time, width)), *gates, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1]
    options = {"fusedActivationFunction": 4, "timeMajor": False}
    g.output(
        g.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            inputs,
            (1, time, units),
            "float32",
            "UnidirectionalSequenceLSTMOptions",
            **options,
        )
    )


case("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm, relative=3e-6)


def variables(g: SubgraphWriter) -> None:
    """A sum of all inputs so far, which begins with 2."""
    first = g.file.subgraph()
    handle = first.tensor("handle", (), "resource")
    first.add("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="total")
    first.add("ASSIGN_VARIABLE", [handle, first.const(np.full((2, 3), 2, np.float32))], [], "AssignVariableOptions")
    g.add("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=1)
    own = g.tensor("handle", (), "resource")
    g.add("VAR_HANDLE", [], [own], "VarHandleOptions", container="", sharedName="total")
    before = g.op("READ_VARIABLE", [own], (2, 3), "float32", "ReadVariableOptions")
    after = g.op("ADD", [before, g.input((2, 3))], (2, 3), "float32", "AddOptions")
    g.add("ASSIGN_VARIABLE", [own, after], [], "AssignVariableOptions")
    g.output(after)


for name in ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"):
    case(name, variables)

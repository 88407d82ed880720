"""The last of the operators: moves, and what remembers something."""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]
from tests.frontends.tflite_cases import RELU, X, both, case, real, with_constants
from tests.frontends.tflite_files import Q, SubgraphWriter
from tests.frontends.tflite_more_cases import CASES, IMAGE, ints

from baretorch.ir.graph import Array

__all__ = ["CASES"]  # with those of the files before

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


def scattered(kind: str, index: Array | tuple[int, ...], source: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """SCATTER_ND by a constant, or by an input of this shape; of float32, or of the type that `kind` names."""
    dtype = kind.removeprefix("_") if kind in ("_int64", "_bool") else "float32"

    def written(g: SubgraphWriter) -> None:
        at = g.input(index, "int32") if isinstance(index, tuple) else g.const(index)
        inputs = [at, g.input(source, dtype), g.const(ints(*shape))]
        g.output(g.op("SCATTER_ND", inputs, shape, dtype, "ScatterNdOptions"))

    case(f"SCATTER_ND{kind}", written)


PLACES = np.array([[[0, 4], [2, 1]], [[1, 0], [2, 2]]], np.int32)
scattered("", PLACES, (2, 2, 3), (3, 5, 3))
scattered("_twice", np.array([[2], [0], [2]], np.int32), (3, 4), (3, 4))
scattered("_computed", (5, 1), (5, 2), (3, 2))
scattered("_computed_places", (4, 2), (4,), (3, 2))
scattered("_int64", PLACES, (2, 2), (3, 5))
scattered("_bool", PLACES, (2, 2), (3, 5))
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
    """Read the batch size before a reshape, like Keras."""
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
    count = g.op("REDUCE_PROD", [sizes, g.const(ints(0))], (), "int32", "ReducerOptions")
    row = g.op("PACK", [count], (1,), "int32", "PackOptions", valuesCount=1, axis=0)
    g.output(g.op("RESHAPE", [x, row], (12,), "float32", "ReshapeOptions"))
    shape = g.op(
        "PACK", [batch, g.const(ints(3)[0]), g.const(ints(2)[0])], (3,), "int32", "PackOptions", valuesCount=3, axis=0
    )
    g.output(g.op("RESHAPE", [x, shape], (2, 3, 2), "float32", "ReshapeOptions"))


case("SHAPE", shape_of)


def constants_out(g: SubgraphWriter) -> None:
    """Return a constant, an unchanged input, and one tensor twice."""
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
    """int8 with 16 bits of memory, bit for bit."""
    width, units, rank, memory = 5, 4, 2, 6
    kept = Q(0.002, 0, "int16")
    state = g.tensor("state", (1, units * rank * memory), "int16", kept, variable=True)
    features = g.const(real(units * rank, width, scale=0.4), Q(0.02))
    times = g.const(real(units * rank, memory, scale=0.4), Q(0.0001, 0, "int16"))
    bias = g.const(real(units, scale=0.3), Q(0.002 * 0.0001, 0, "int32"))
    inputs = [g.input((1, width), X), features, times, bias, state]
    g.output(g.op("SVDF", inputs, (1, units), Q(0.03, -128), "SVDFOptions", rank=rank, fusedActivationFunction=RELU))


case("SVDF_int8", svdf_bytes, lsb=0)


def lstm(g: SubgraphWriter, clip: float = 0.0) -> None:
    time, width, units = 4, 3, 5
    gates = [*(g.const(real(units, width)) for _ in range(4)), *(g.const(real(units, units)) for _ in range(4))]
    biases = [g.const(real(units)) for _ in range(4)]
    hidden, cell = (g.tensor(name, (1, units), "float32", variable=True) for name in ("hidden", "cell"))
    inputs = [g.input((1, time, width)), *gates, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1]
    options = {"fusedActivationFunction": 4, "timeMajor": False, "cellClip": clip}
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
case("UNIDIRECTIONAL_SEQUENCE_LSTM_limited", lambda g: lstm(g, 0.3), relative=3e-6)


NO_ATTRIBUTES: dict[str, Any] = {"compositeAttributes": list(flexbuffers.Dumps({}))}


def composite(g: SubgraphWriter) -> None:
    """Two calls of one decomposition, which calls another one."""
    inner, middle = g.file.subgraph(), g.file.subgraph()
    x = inner.input((2, 5), X)
    inner.output(inner.op("MUL", [x, x], (2, 5), Q(0.05, -7), "MulOptions"))
    x, w = middle.input((2, 5), X), middle.input((3, 5), Q(0.01))
    call = {"name": "test.square", "decompositionSubgraphIndex": 1} | NO_ATTRIBUTES
    squares = middle.op("STABLEHLO_COMPOSITE", [x], (2, 5), Q(0.05, -7), "StableHLOCompositeOptions", **call)
    y = middle.op("FULLY_CONNECTED", [squares, w, -1], (2, 3), X, "FullyConnectedOptions")
    middle.output(y, middle.op("ABS", [y], (2, 3), X))
    call = {"name": "test.layer", "decompositionSubgraphIndex": 2} | NO_ATTRIBUTES
    weight, given = g.const(real(3, 5, scale=0.4), Q(0.01)), g.input((2, 5), X)
    for i in range(2):
        results = [g.tensor(f"y{i}{j}", (2, 3), X.type, X) for j in range(2)]
        g.add("STABLEHLO_COMPOSITE", [given, weight], results, "StableHLOCompositeOptions", **call)
        g.output(*results)


case("STABLEHLO_COMPOSITE_int8", composite)


def composite_of_floats(g: SubgraphWriter) -> None:
    inner = g.file.subgraph()
    x, gain = inner.input((2, 5)), inner.const(real(5))
    inner.output(
        inner.op(
            "ADD", [inner.op("MUL", [x, gain], (2, 5), "float32", "MulOptions"), x], (2, 5), "float32", "AddOptions"
        )
    )
    call = {"name": "test.scaled", "decompositionSubgraphIndex": 1} | NO_ATTRIBUTES
    g.output(g.op("STABLEHLO_COMPOSITE", [g.input((2, 5))], (2, 5), "float32", "StableHLOCompositeOptions", **call))


case("STABLEHLO_COMPOSITE", composite_of_floats)


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

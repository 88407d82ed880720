"""For each operator that is read, small nodes in the form of the opsets from 7 to 14."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper
from tests.frontends.onnx.files import BOOL, FLOAT, INT64, node, weights


@dataclass(frozen=True)
class Fed:
    """An input of the model. Arrays without it are constants, None is an omitted input."""

    value: Any


@dataclass(frozen=True, eq=False)
class Case:
    """A node with these inputs, in the form of the opsets from `since` to before `until`. `reads` are the outputs that
    the model returns, of `outputs`."""

    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    since: int = 7
    until: int = 99
    outputs: int = 1
    reads: int = 0


def case(*inputs: Any, since: int = 7, until: int = 99, outputs: int = 1, reads: int = 0, **attributes: Any) -> Case:
    return Case(inputs, attributes, since, until, outputs, reads or outputs)


def real(*shape: int) -> Fed:
    return Fed(weights(*shape))


def ints(*values: Any) -> Any:
    return np.array(values, np.int64)


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def truths(*values: Any) -> Fed:
    return Fed(np.array(values, np.bool_))


def graph(nodes: list[Any], inputs: Mapping[str, int], outputs: Mapping[str, int], *shape: int) -> Any:
    """A graph inside a node, with values of these types and this shape; those that are not float are scalars."""
    values = (
        [helper.make_tensor_value_info(n, t, shape if t == FLOAT else []) for n, t in some.items()]
        for some in (inputs, outputs)
    )
    return helper.make_graph(nodes, "inside", *values)


X, IMAGE, ROW = real(2, 3, 4), real(1, 2, 5, 5), real(1, 6)
POSITIVE, LARGE = Fed(weights(2, 3) ** 2 + 0.25), Fed(weights(2, 3) ** 2 + 1.5)
BYTES = Fed(np.arange(-6, 6, dtype=np.int8).reshape(3, 4))
PAIR = (X, real(3, 1))  # broadcast
WHOLE = (Fed(ints(3, 4, 5)), Fed(ints(3, 2, 7)))
BOTH = (truths(True, False, True), truths(True, True, False))
NORM = tuple(weights(2) ** 2 + k for k in (0.5, 0.25, 0.125, 1.0))
EACH = tuple(weights(2, 5, 5) ** 2 + k for k in (0.5, 0.25, 0.125, 1.0))
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}
UNARY = (
    *("Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor"),
    *("HardSigmoid", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Neg", "Relu", "Round", "Selu", "Shrink"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh", "ThresholdedRelu", "Celu"),
    *("HardSwish", "Mish"),
)
REDUCE = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def _loop_body() -> Any:
    """Add the number of the turn to a value, and return it as a row too."""
    nodes = [node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["v", "f"], ["w"]), node("Neg", ["w"], ["row"])]
    inputs, outputs = {"i": INT64, "go": BOOL, "v": FLOAT}, {"go2": BOOL, "w": FLOAT, "row": FLOAT}
    return graph([*nodes, node("Identity", ["go"], ["go2"])], inputs, outputs, 2)


def _scan_body() -> Any:
    nodes = [node("Add", ["h", "e"], ["h2"]), node("Mul", ["h2", "e"], ["o"])]
    return graph(nodes, {"h": FLOAT, "e": FLOAT}, {"h2": FLOAT, "o": FLOAT}, 3)


def _branch(op: str) -> Any:
    constant = node("Constant", [], ["k"], value=helper.make_tensor("k", FLOAT, [3], [1.5, -2.0, 0.0]))
    return graph([constant, node(op, ["k"], ["r"])], {}, {"r": FLOAT}, 3)


def _recurrent(gates: int, directions: int = 1, **attributes: Any) -> Case:
    w, r = weights(directions, 2 * gates, 3) / 2, weights(directions, 2 * gates, 2) / 2
    return case(real(4, 1, 3), w, r, weights(directions, 4 * gates) / 2, hidden_size=2, outputs=2, **attributes)


QUANTIZED = (np.float32(0.125), np.uint8(100))
WEIGHT = (weights(4, 4) * 16 + 16, np.float32(0.0625), np.uint8(16))


def _stored(*shape: int) -> Any:
    return Fed((weights(*shape) * 64 + 90).astype(np.uint8))


CASES: Mapping[str, tuple[Case, ...]] = {
    **dict.fromkeys(UNARY, (case(X),)),
    **dict.fromkeys(("Log", "Sqrt", "Reciprocal"), (case(POSITIVE),)),
    "Acosh": (case(LARGE),),
    **dict.fromkeys(("Add", "Sub", "Mul", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), (case(*PAIR),)),
    "Div": (case(X, Fed(weights(3, 1) + 2)), case(*WHOLE)),
    "Pow": (case(POSITIVE, Fed(floats(2.5))), case(X, floats(2)), case(X, ints(3), since=12)),
    "Equal": (case(*WHOLE), case(X, X, since=11)),
    "Mod": (case(*WHOLE), case(*PAIR, fmod=1)),
    **dict.fromkeys(("And", "Or", "Xor"), (case(*BOTH),)),
    "Not": (case(BOTH[0]),),
    "BitShift": (case(Fed(np.uint8([1, 5, 9])), Fed(np.uint8([1, 2, 3])), direction="LEFT"),),
    "Where": (case(truths(True, False, True), real(2, 3), real(3)),),
    **dict.fromkeys(("Max", "Min", "Mean", "Sum"), (case(X, X, X), case(*PAIR, since=8))),
    "Cast": (case(X, to=INT64), case(Fed(ints(0, 3)), to=FLOAT), case(X, to=BOOL)),
    "Clip": (
        case(X, until=11),
        case(X, until=11, min=-0.25, max=0.125),
        case(X, until=11, max=0.125),
        case(X, floats(-0.25).reshape(()), floats(0.125).reshape(()), since=11),
        case(X, None, floats(0.125).reshape(()), since=11),
    ),
    "PRelu": (case(X, floats(0.25)), case(X, weights(3, 1))),
    **dict.fromkeys(
        ("Softmax", "LogSoftmax", "Hardmax"),
        (
            case(X),
            case(ROW),
            case(X, axis=0),
            case(X, axis=1),
            case(X, axis=2),
            case(X, axis=-1, since=11),
            case(X, axis=-2, since=11),
        ),
    ),
    "MatMul": (case(X, weights(4, 2)),),
    "Gemm": (
        case(real(2, 3), weights(4, 3), weights(4), transB=1),
        case(real(2, 3), weights(3, 4), weights(1, 4), alpha=0.5, beta=2.0),
        case(real(2, 3), weights(3, 4), since=11),
    ),
    "Einsum": (case(real(2, 3), weights(3, 4), equation="ij,jk->ik"),),
    "Det": (case(real(3, 3)),),
    "Conv": (
        case(IMAGE, weights(3, 2, 3, 3), weights(3), pads=[1, 1, 1, 1], strides=[2, 2]),
        case(IMAGE, weights(2, 1, 3, 3), group=2, auto_pad="SAME_LOWER"),
    ),
    "ConvTranspose": (
        case(IMAGE, weights(2, 3, 3, 3), weights(3), pads=[1, 1, 1, 1], strides=[2, 2], output_padding=[1, 1]),
        case(real(1, 1, 1, 3), weights(1, 1, 1, 3), strides=[1, 2], output_shape=[1, 6]),
        case(real(1, 1, 1, 3), weights(1, 1, 1, 3), strides=[1, 2], output_shape=[1, 6], auto_pad="SAME_LOWER"),
    ),
    "AveragePool": (
        case(IMAGE, **POOL),
        case(IMAGE, **POOL, pads=[1, 1, 1, 1], count_include_pad=1),
        case(IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, since=10),
    ),
    "MaxPool": (
        case(IMAGE, **POOL),
        case(IMAGE, **POOL, auto_pad="SAME_UPPER"),
        case(IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, since=10),
        case(IMAGE, kernel_shape=[2, 2], dilations=[2, 2], since=10),
        case(Fed((weights(1, 1, 4, 4) * 100).astype(np.int8)), kernel_shape=[2, 2], since=12),
    ),
    "MaxUnpool": (
        case(
            real(1, 1, 2, 2),
            Fed(ints([0, 3], [8, 15]).reshape(1, 1, 2, 2)),
            kernel_shape=[2, 2],
            strides=[2, 2],
            since=9,
        ),
    ),
    "LpPool": (case(IMAGE, **POOL, p=2), case(IMAGE, **POOL, p=1, pads=[1, 1, 1, 1])),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), (case(IMAGE),)),
    "BatchNormalization": (
        case(IMAGE, *NORM, epsilon=0.0625),
        case(IMAGE, *NORM, spatial=1, until=9),
        case(IMAGE, *EACH, spatial=0, epsilon=0.0625, until=9),
        case(IMAGE, *EACH, spatial=0, until=9),
    ),
    "InstanceNormalization": (case(IMAGE, weights(2), weights(2)),),
    "LRN": (case(IMAGE, size=3, alpha=0.5),),
    "LpNormalization": (case(X, axis=1, p=2),),
    "MeanVarianceNormalization": (case(IMAGE), case(X, axes=[0, 2])),
    "NegativeLogLikelihoodLoss": (case(real(3, 4), Fed(ints(0, 3, 1))),),
    "SoftmaxCrossEntropyLoss": (case(real(3, 4), Fed(ints(0, 3, 1))),),
    "Dropout": (
        case(X, until=12),
        case(X, ratio=0.25, until=12),
        case(X, ratio=0.25, until=12, outputs=2, reads=1),
        case(X, floats(0.25).reshape(()), since=12, outputs=2),
    ),
    "Upsample": (
        *(case(IMAGE, scales=[1.0, 1.0, 2.0, 3.0], mode=m, until=9) for m in ("nearest", "linear")),
        case(IMAGE, scales=[1.0, 1.0, 1.5, 1.7], until=9),
        *(case(IMAGE, floats(1, 1, 2, 1.6), mode=m, since=9, until=10) for m in ("nearest", "linear")),
    ),
    "Resize": (
        *(
            case(IMAGE, floats(1, 1, *s), mode=m, since=10, until=11)
            for m in ("nearest", "linear")
            for s in ((2, 3), (0.6, 0.6), (1.7, 0.4), (1, 2.5), (0.5, 1))
        ),
        case(IMAGE, floats(), floats(1, 1, 2, 3), since=11),
        case(IMAGE, floats(), floats(1, 1, 0.6, 1.7), since=11, mode="linear"),
        case(IMAGE, None, floats(1, 1, 2, 3), since=13),
        case(IMAGE, floats(), floats(), ints(1, 2, 3, 8), since=11, mode="cubic"),
    ),
    "Reshape": (case(X, ints(0, -1)), case(X, ints(-1, 8), allowzero=1, since=14)),
    "Flatten": (case(X), case(X, axis=2), case(X, axis=-1, since=11)),
    "Squeeze": (
        case(ROW, until=13),
        case(real(1, 3, 1), axes=[2], until=13),
        case(real(1, 3, 1), axes=[-1], since=11, until=13),
        case(real(1, 3, 1), ints(2), since=13),
    ),
    "Unsqueeze": (
        case(X, axes=[0, 2], until=13),
        case(X, axes=[-1], since=11, until=13),
        case(X, ints(0, 2), since=13),
    ),
    "Transpose": (case(X), case(X, perm=[1, 2, 0])),
    "Expand": (case(ROW, ints(2, 3, 1)),),
    "Tile": (case(X, ints(1, 2, 3)),),
    "Concat": (case(X, X, axis=1), case(X, X, axis=-1, since=11)),
    "Split": (
        case(X, axis=2, outputs=2),
        case(X, axis=2, split=[1, 3], outputs=2, until=13),
        case(X, axis=-1, split=[1, 3], outputs=2, since=11, until=13),
        case(X, ints(1, 3), axis=2, outputs=2, since=13),
    ),
    "Slice": (
        case(X, starts=[1, -3], ends=[2, 1000], axes=[0, 2], until=10),
        case(X, starts=[0, 1], ends=[1, 3], until=10),
        case(X, ints(1, -3), ints(2, 1000), ints(0, 2), since=10),
        case(X, ints(3), ints(0), ints(2), ints(-2), since=10),
        case(X, ints(3), ints(0), ints(-1), ints(-2), since=11),
    ),
    "Pad": (
        case(X, pads=[0, 1, 2, 0, 0, 1], until=11),
        case(X, pads=[0, 1, 2, 0, 0, 1], value=1.5, until=11),
        case(X, pads=[0, 1, 2, 0, 0, 1], mode="reflect", until=11),
        case(X, pads=[0, 1, 2, 0, 0, 1], mode="edge", until=11),
        case(X, ints(0, 1, 2, 0, 0, 1), floats(1.5).reshape(()), since=11),
        case(X, ints(0, 1, 2, 0, 0, 1), mode="edge", since=11),
    ),
    "DepthToSpace": (case(real(1, 8, 2, 3), blocksize=2), case(real(1, 8, 2, 3), blocksize=2, mode="CRD", since=11)),
    "SpaceToDepth": (case(real(1, 2, 4, 6), blocksize=2),),
    "Trilu": (case(X), case(X, ints(1).reshape(()), upper=0)),
    "ReverseSequence": (case(real(4, 2), ints(2, 4)),),
    "EyeLike": (case(real(3, 4), k=1),),
    "Range": (case(ints(1).reshape(()), ints(7).reshape(()), ints(2).reshape(())),),
    "Constant": (
        case(value=helper.make_tensor("k", FLOAT, [2], [1.0, 2.0])),
        case(value_floats=[1.0, 2.0], since=12),
        case(value_int=3, since=12),
    ),
    "ConstantOfShape": (case(ints(2, 3), value=helper.make_tensor("k", FLOAT, [1], [1.5])), case(ints(2))),
    "Shape": (case(X),),
    "Size": (case(X),),
    "NonZero": (case(floats(0, 1, 2)),),
    "Unique": (case(floats(2, 1, 2), outputs=4),),
    "Gather": (case(X, Fed(ints(2, 0)), axis=1), case(X, Fed(ints(-1, 0)), axis=-2, since=11)),
    "GatherElements": (case(real(2, 3), Fed(ints([0, 2], [1, -1])), axis=1),),
    "GatherND": (case(real(2, 3), Fed(ints([1, 2], [0, -1]))), case(X, Fed(ints([1], [0])), batch_dims=1, since=12)),
    "Scatter": (case(real(2, 3), Fed(ints([0, 2], [1, 0])), real(2, 2), axis=1, since=9, until=11),),
    "ScatterElements": (case(real(2, 3), Fed(ints([0, 2], [1, -3])), real(2, 2), axis=1),),
    "ScatterND": (case(real(3, 2), Fed(ints([2], [0])), real(2, 2)),),
    "OneHot": (case(Fed(ints(0, 2, 5)), ints(4), floats(-1, 2)), case(Fed(ints(-1, 2)), ints(4), floats(0, 1), axis=0)),
    "Compress": (case(X, np.array([False, True, True]), axis=1), case(X, np.array([True]), axis=-1, since=11)),
    **{
        f"Reduce{kind}": (case(POSITIVE), case(POSITIVE, axes=[1], keepdims=0), case(POSITIVE, axes=[-1], since=11))
        for kind in REDUCE
    },
    "ReduceSum": (
        case(X),
        case(X, axes=[0, 2], until=13),
        case(X, axes=[1], keepdims=0, until=13),
        case(X, axes=[-1], since=11, until=13),
        case(X, ints(0, 2), keepdims=0, since=13),
    ),
    **dict.fromkeys(
        ("ArgMax", "ArgMin"),
        (
            case(X, axis=1),
            case(X, keepdims=0),
            case(X, axis=-1, since=11),
            case(X, axis=1, select_last_index=1, since=12),
        ),
    ),
    "TopK": (
        case(X, k=2, outputs=2, until=10),
        case(X, k=1, axis=1, outputs=2, until=10),
        case(X, ints(2), outputs=2, since=10),
        case(X, ints(2), axis=1, largest=0, outputs=2, since=11),
    ),
    "CumSum": (case(X, ints(1).reshape(()), reverse=1),),
    "RNN": (_recurrent(1), _recurrent(1, 2, direction="bidirectional")),
    "GRU": (_recurrent(3), _recurrent(3, linear_before_reset=1)),
    "LSTM": (_recurrent(4), _recurrent(4, direction="reverse")),
    "If": (case(truths(True), then_branch=_branch("Relu"), else_branch=_branch("Neg")),),
    "Loop": (case(ints(3).reshape(()), np.array(True), real(2), body=_loop_body(), outputs=2),),
    "Scan": (
        case(None, real(2, 3), real(2, 4, 3), body=_scan_body(), num_scan_inputs=1, outputs=2, until=9),
        case(None, real(1, 3), real(1, 4, 3), body=_scan_body(), num_scan_inputs=1, directions=[1], outputs=2, until=9),
        case(real(3), real(4, 3), body=_scan_body(), num_scan_inputs=1, outputs=2, since=9),
        case(real(3), real(3, 4), body=_scan_body(), num_scan_inputs=1, scan_input_axes=[1], outputs=2, since=9),
    ),
    "QuantizeLinear": (case(X, np.float32(0.0625), np.int8(3)), case(X, np.float32(0.0625))),
    "DequantizeLinear": (
        case(BYTES, np.float32(0.5), np.int8(3)),
        case(np.int8([[1, 2], [3, 4]]), floats(0.5, 0.25), np.int8([0, 1]), axis=0, since=13),
    ),
    "QLinearMatMul": (
        case(_stored(2, 4), *QUANTIZED, WEIGHT[0].astype(np.uint8), *WEIGHT[1:], np.float32(0.25), np.uint8(90)),
    ),
    "QLinearConv": (
        case(
            *(_stored(1, 1, 4, 4), *QUANTIZED, WEIGHT[0].astype(np.uint8).reshape(1, 1, 4, 4), *WEIGHT[1:]),
            *(np.float32(0.25), np.uint8(90)),
        ),
    ),
    "MatMulInteger": (case(_stored(2, 4), WEIGHT[0].astype(np.uint8), np.uint8(100), np.uint8(16)),),
    "ConvInteger": (case(_stored(1, 1, 4, 4), WEIGHT[0].astype(np.uint8).reshape(1, 1, 4, 4), np.uint8(100)),),
}

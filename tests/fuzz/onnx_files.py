"""Damage to ONNX files: their bytes, and the structure that the bytes say."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper

from baretorch.frontends.onnx.classic_model import as_numbers
from baretorch.frontends.onnx.fixed import fix_inputs
from baretorch.frontends.onnx.halves import widen_halves
from baretorch.frontends.onnx.integer import OPERATORS, is_integer, ranges_of
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import TABLE, to_graph
from baretorch.passes.order import lower_graph
from tests.frontends.onnx.classic_models import KINDS
from tests.frontends.onnx.files import BOOL, FLOAT, FLOAT16, model, node, small_cnn, weights
from tests.frontends.onnx.integer_nets import integer_cnn, integer_transformer
from tests.frontends.onnx.test_onnx_control import counting
from tests.frontends.onnx.version_cases import graph
from tests.fuzz.mutate import NAMES, damaged_bytes

SIZES = (0, 1, 2, 3, -1, -2, 7, 1000, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))


@cache
def sound() -> tuple[Any, ...]:
    """A small network, the same quantized, shape arithmetic that makes constants, a loop, operators of old opsets,
    integer networks, operators of onnxruntime's own in float16, and elements that are put where indices say."""
    scales = {"s": np.float32(0.05), "z": np.int8(3), "ws": np.float32([0.01, 0.02, 0.03]), "wz": np.int8([0, 0, 0])}
    half = model(
        [
            node("SkipLayerNormalization", ["x", "x", "g"], ["n"], domain="com.microsoft"),
            node("Attention", ["n", "w", "b"], ["a"], domain="com.microsoft", num_heads=2),
            node("FusedMatMul", ["a", "n"], ["m"], domain="com.microsoft", transB=1, alpha=0.5),
            node("Cast", ["m"], ["f"], to=FLOAT),
            node("Mul", ["f", "two"], ["d"]),
            node("Cast", ["d"], ["y"], to=FLOAT16),
        ],
        {"x": [1, 3, 4]},
        ["y"],
        {
            "g": weights(4).astype(np.float16),
            "w": weights(4, 12).astype(np.float16),
            "b": weights(12).astype(np.float16),
            "two": np.float32(2),
        },
        types={"x": FLOAT16, "y": FLOAT16},
        domains={"com.microsoft": 1},
    )
    quantized = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["r"], axis=0),
            node("Gemm", ["d", "r"], ["m"], transB=1),
            node("QuantizeLinear", ["m", "s", "z"], ["o"]),
            node("Reshape", ["o", "shape"], ["v"]),
            node("DequantizeLinear", ["v", "s", "z"], ["y"]),
        ],
        {"x": [1, 4]},
        ["y"],
        {**scales, "w": np.arange(12, dtype=np.int8).reshape(3, 4), "shape": np.array([3, 1])},
    )
    arithmetic = model(
        [
            node("Shape", ["x"], ["n"]),
            node("ConstantOfShape", ["n"], ["zeros"]),
            node("Expand", ["w", "n"], ["e"]),
            node("Tile", ["w", "twice"], ["t"]),
            node("Range", ["zero", "four", "one"], ["i"]),
            node("Gather", ["x", "i"], ["g"], axis=1),
            node("Pad", ["g", "pads"], ["p"]),
            node("Slice", ["p", "from", "to", "axes"], ["c"]),
            node("Add", ["c", "zeros"], ["a"]),
            node("Add", ["a", "e"], ["b"]),
            node("Concat", ["b", "t"], ["k"], axis=0),
            node("Resize", ["x4", "", "scales"], ["u"]),
            node("TopK", ["k", "two"], ["y", "at"], axis=1),
        ],
        {"x": [2, 4], "x4": [1, 1, 2, 2]},
        ["y", "u"],
        {
            "w": weights(1, 4),
            "twice": np.array([2, 1]),
            "zero": np.array(0),
            "one": np.array(1),
            "four": np.array(4),
            "pads": np.array([0, 1, 0, 1]),
            "from": np.array([1]),
            "to": np.array([5]),
            "axes": np.array([1]),
            "two": np.array([2]),
            "scales": np.float32([1, 1, 2, 2]),
        },
    )
    put = model(
        [
            node(
                "ConvTranspose",
                ["x", "w"],
                ["v"],
                strides=[2, 1, 1],
                pads=[1, *[0] * 5],
                output_padding=[1, 0, 0],
                group=2,
            ),
            node("MaxPool", ["v"], ["m", "at"], kernel_shape=[2, 2, 2], strides=[2, 2, 2], storage_order=1),
            node("MaxUnpool", ["m", "at"], ["u"], kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
            node("ScatterND", ["u", "i", "e"], ["s"], reduction="max"),
            node("Squeeze", ["s", "zero"], ["f"]),
            node("Resize", ["f", "", "half"], ["y"], mode="cubic", antialias=1, exclude_outside=1),
        ],
        {"x": [1, 2, 2, 3, 3]},
        ["y"],
        {
            "w": weights(2, 1, 2, 2, 2),
            "i": np.array([[0, 1, 2], [0, -1, 0]]),
            "e": weights(2, 4, 4),
            "zero": np.array([0]),
            "half": np.float32([1, 1, 0.5, 0.75]),
        },
    )
    return (
        small_cnn(),
        quantized,
        arithmetic,
        half,
        put,
        counting(3),
        *old(),
        integer_cnn(),
        integer_transformer(),
        *classics(),
    )


def old() -> tuple[Any, ...]:
    """Return models with all operators whose form changed, and a function and a branch with such operators."""
    norm = {f"n{i}": weights(2, 4, 4) ** 2 + 1 for i in range(4)}
    six = model(
        [
            node("PRelu", ["x", "slope"], ["a"]),
            node("Mul", ["a", "slope"], ["b"], broadcast=1, axis=1),
            node("Upsample", ["b"], ["c"], height_scale=2.0, width_scale=1.0),
            node("Dropout", ["c"], ["d"], is_test=1),
            node("Less", ["d", "row"], ["y"], broadcast=1, axis=-1),
        ],
        {"x": [1, 2, 2, 4]},
        ["y"],
        {"slope": weights(2), "row": weights(4)},
        opset=6,
        types={"y": BOOL},
    )
    seven = model(
        [
            node("BatchNormalization", ["x", *norm], ["a"], spatial=0),
            node("Softmax", ["a"], ["b"], axis=2),
            node("Upsample", ["b"], ["c"], scales=[1.0, 1.0, 2.0, 1.5]),
            node("Clip", ["c"], ["d"], min=0.0),
            node("Pad", ["d"], ["e"], pads=[0, 0, 1, 0, 0, 0, 0, 1], value=0.5),
            node("Slice", ["e"], ["f"], starts=[0, 1], ends=[8, 5], axes=[2, 3]),
            node("Dropout", ["f"], ["g", "mask"], ratio=0.5),
            node("Split", ["g"], ["h", "i"], axis=1),
            node("Squeeze", ["h"], ["j"], axes=[0, 1]),
            node("Unsqueeze", ["j"], ["k"], axes=[0]),
            node("TopK", ["k"], ["l", "at"], k=2),
            node("ReduceSum", ["l"], ["y"], axes=[1], keepdims=0),
        ],
        {"x": [1, 2, 4, 4]},
        ["y"],
        norm,
        opset=7,
    )
    steps = graph(
        [node("Add", ["s", "e"], ["t"]), node("Hardmax", ["t"], ["o"], axis=0)],
        {"s": FLOAT, "e": FLOAT},
        {"t": FLOAT, "o": FLOAT},
        3,
    )
    eight = model(
        [node("Scan", ["", "s", "x"], ["z", "w"], num_scan_inputs=1, body=steps), node("Squeeze", ["w"], ["y"])],
        {"s": [2, 3], "x": [2, 4, 3]},
        ["y", "z"],
        opset=8,
    )
    body = [node("Resize", ["a", "b"], ["r"], mode="nearest"), node("LogSoftmax", ["r"], ["c"])]
    function = helper.make_function("own", "f", ["a", "b"], ["c"], body, [helper.make_opsetid("", 10)])
    ten = model(
        [node("f", ["q", "scales"], ["y"], domain="own"), node("Relu", ["x"], ["q"])],
        {"x": [1, 1, 2, 4]},
        ["y"],
        {"scales": np.float32([1, 1, 0.5, 2])},
        opset=10,
        domains={"own": 1},
        functions=[function],
    )
    nine = model(
        [node("Scatter", ["x", "i", "u"], ["y"])], {"x": [3]}, ["y"], {"i": np.array([1]), "u": weights(1)}, opset=9
    )
    return six, seven, eight, nine, ten


def classics() -> tuple[Any, ...]:
    """Return a forest, support vectors and a linear model."""
    return tuple(
        KINDS[kind](np.random.default_rng(seed))[0] for kind, seed in (("forest", 1), ("vectors", 0), ("linear", 1))
    )


def _change_attribute(made: Any, rng: random.Random) -> None:
    some = [a for n in made.graph.node for a in n.attribute]
    if not some:
        return
    a = rng.choice(some)
    if a.type == AttributeProto.INTS and a.ints:
        a.ints[rng.randrange(len(a.ints))] = rng.choice(SIZES)
    elif a.type == AttributeProto.FLOATS and a.floats:
        del a.floats[rng.randrange(len(a.floats)) :]
    elif a.type == AttributeProto.STRINGS and a.strings:
        a.strings[rng.randrange(len(a.strings))] = rng.choice((b"LEAF", b"BRANCH_EQ", b"\xff", b""))
    elif a.type == AttributeProto.INT:
        a.i = rng.choice(SIZES)
    elif a.type == AttributeProto.TENSOR and rng.random() < 0.7:
        a.t.CopyFrom(onnx.numpy_helper.from_array(np.array(rng.choice((*SIZES, 0.5, np.nan)), np.float32)))
    else:
        a.type = rng.randrange(15)


def _change_constant(made: Any, rng: random.Random) -> None:
    if not made.graph.initializer:
        return
    t = rng.choice(made.graph.initializer)
    what = rng.randrange(4)
    if what == 0:
        t.dims.append(rng.choice(SIZES))
    elif what == 1 and t.dims:
        t.dims[rng.randrange(len(t.dims))] = rng.choice(SIZES)
    elif what == 2:
        t.data_type = rng.randrange(28)
    else:
        t.raw_data = np.array([rng.choice(SIZES) for _ in range(max(1, len(t.raw_data) // 8))], np.int64).tobytes()


def _change_node(made: Any, rng: random.Random) -> None:
    nodes = made.graph.node
    n = rng.choice(nodes)
    what = rng.randrange(7)
    if what == 0:
        n.domain, _, n.op_type = f"::{rng.choice([*TABLE, *sorted(OPERATORS)])}".rpartition("::")
        n.domain = n.domain.removeprefix("::")
    elif what == 1 and n.input:
        known = [name for other in nodes for name in (*other.input, *other.output)]
        n.input[rng.randrange(len(n.input))] = rng.choice([*known, *NAMES])
    elif what == 2:
        n.domain = rng.choice(("com.microsoft", "ai.onnx.ml", "own", "PACTOps", *NAMES))
    elif what == 3:
        nodes.add().CopyFrom(n)
    elif what == 4:
        del n.input[-1:]
    elif what == 5:
        others = [*nodes]
        rng.shuffle(others)
        del nodes[:]
        nodes.extend(others)
    else:
        n.name = rng.choice(NAMES)


def _change_type(made: Any, rng: random.Random) -> None:
    value = rng.choice([*made.graph.input, *made.graph.output])
    kind = value.type.tensor_type
    if kind.shape.dim and rng.random() < 0.7:
        d = rng.choice(kind.shape.dim)
        d.dim_value = rng.choice(SIZES)
    else:
        kind.elem_type = rng.randrange(28)


def _change_opset(made: Any, rng: random.Random) -> None:
    rng.choice(made.opset_import).version = rng.choice((*range(5, 16), *SIZES))


def _change_function(made: Any, rng: random.Random) -> None:
    """Make an attribute of a function's node refer to an attribute of the call."""
    for f in made.functions:
        for a in (a for n in f.node for a in n.attribute if rng.random() < 0.5):
            a.ref_attr_name = rng.choice(NAMES)


CHANGES = (
    *(_change_attribute, _change_constant, _change_constant, _change_node, _change_node, _change_type),
    *(_change_opset, _change_function),
)


def make_onnx(rng: random.Random) -> bytes:
    base = rng.choice(sound())
    if rng.random() < 0.25:
        return damaged_bytes(base.SerializeToString(), rng)
    made = onnx.ModelProto()
    made.CopyFrom(base)
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(made, rng)
    return bytes(made.SerializeToString())


def read_onnx(data: bytes) -> None:
    read, _, halves = widen_halves(as_numbers(parse(data))[0])
    names = [i.name for i in read.graph.input]
    last = data[-1] if data else 0
    if names and last % 4 == 0:
        fix_inputs(read, {names[0]: ("1", "0.5,2", "-1")[last // 4 % 3]}, {})
    interface = interface_of(read, {}, {})
    ranges = (
        ranges_of(interface.inputs, [(np.array(0, np.int8),)] * len(interface.inputs)) if is_integer(read) else None
    )
    lower_graph(to_graph(read, interface, "fuzz", ranges, halves if ranges is None else {})[0])

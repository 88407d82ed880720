"""A small `.tflite` model for every operator of the table, in float and where LiteRT has a kernel in int8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.frontends.tflite_files import Q, SubgraphWriter, TfliteWriter

from baretorch.ir.graph import Array

X = Q(0.04, 5)
Y = Q(0.05, -7)
SAME, VALID = 0, 1
RELU, RELU6 = 1, 3
RNG = np.random.default_rng(3)


def real(*shape: int, scale: float = 1.0) -> Array:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A model of one operator. `lsb` is how many steps an int8 output may be off, `relative` how much of its largest
    number a float one."""

    name: str
    build: Callable[[SubgraphWriter], None]
    lsb: int = 1
    relative: float = 1e-6

    def bytes(self) -> bytes:
        writer = TfliteWriter()
        self.build(writer.main)
        return writer.bytes()


CASES: list[Case] = []


def case(name: str, build: Callable[[SubgraphWriter], None], **limits: Any) -> None:
    assert all(c.name != name for c in CASES), name
    CASES.append(Case(name, build, **limits))


def both(
    operator: str,
    shape: tuple[int, ...],
    out: tuple[int, ...] | None = None,
    x: Q = X,
    y: Q = Y,
    options: str = "",
    kind: str = "",
    int8: bool = True,
    floats: bool = True,
    relative: float = 1e-6,
    **values: Any,
) -> None:
    """An operator of one tensor, in float and in int8."""

    def build(type: str | Q, to: str | Q) -> Callable[[SubgraphWriter], None]:
        def written(g: SubgraphWriter) -> None:
            g.output(g.op(operator, [g.input(shape, type)], out or shape, to, options, **values))

        return written

    name = f"{operator}{kind}"
    if floats:
        case(name, build("float32", "float32"), relative=relative)
    if int8:
        case(f"{name}_int8", build(x, y))


def with_constants(
    operator: str,
    shape: tuple[int, ...],
    constants: list[Array],
    out: tuple[int, ...],
    kind: str = "",
    x: Q | None = X,
    y: Q | None = None,
    options: str = "",
    first: bool = False,
    dtype: str = "float32",
    to: str = "",
    **values: Any,
) -> None:
    """An operator of one tensor and constants that say what to do with it; moved int8 numbers keep their scale."""

    def build(type: str | Q, result: str | Q) -> Callable[[SubgraphWriter], None]:
        def written(g: SubgraphWriter) -> None:
            t, others = g.input(shape, type), [g.const(c) for c in constants]
            g.output(g.op(operator, [*others, t] if first else [t, *others], out, result, options, **values))

        return written

    case(f"{operator}{kind}", build(dtype, to or dtype))
    if x is not None:
        case(f"{operator}{kind}_int8", build(x, y or x))


# --- layers ---------------------------------------------------------------------------------------------------


def conv(
    kind: str,
    size: int,
    channels: int,
    out: int,
    kernel: int,
    y: int,
    activation: int = 0,
    quant: str = "",
    groups: int = 1,
    weight_zero: int = 128,
    **options: Any,
) -> None:
    """`quant`: none, "channel" or "tensor", and "uint8"."""

    def written(g: SubgraphWriter) -> None:
        w, b = real(out, kernel, kernel, channels // groups, scale=0.4), real(out, scale=0.3)
        values = {"padding": SAME, "strideH": 1, "strideW": 1, "fusedActivationFunction": activation} | options
        shapes = (1, size, size, channels), (1, y, y, out)
        if not quant:
            t = g.op(
                "CONV_2D", [g.input(shapes[0]), g.const(w), g.const(b)], shapes[1], "float32", "Conv2DOptions", **values
            )
        else:
            s_w = np.abs(w).max(axis=(1, 2, 3)) / 127 if quant == "channel" else np.array(np.abs(w).max() / 127)
            old = quant == "uint8"
            q_x, q_y = (Q(0.04, 133, "uint8"), Q(0.09, 118, "uint8")) if old else (X, Q(0.09, -10))
            wq = Q(s_w.tolist(), weight_zero if old else 0, "uint8" if old else "int8")
            bq = Q((0.04 * s_w).tolist(), 0, "int32")
            inputs = [g.input(shapes[0], q_x), g.const(w, wq), g.const(b, bq)]
            t = g.op("CONV_2D", inputs, shapes[1], q_y, "Conv2DOptions", **values)
        g.output(t)

    case(f"CONV_2D{kind}", written, relative=3e-6)


conv("", 6, 3, 5, 3, 6, RELU)
conv("_int8", 6, 3, 5, 3, 6, RELU, "channel")
conv("_int8_tensor", 6, 3, 5, 3, 6, RELU6, "tensor")
conv("_uint8", 6, 3, 5, 3, 6, 0, "uint8")
conv("_uint8_uneven", 6, 3, 5, 3, 6, 0, "uint8", weight_zero=101)
conv("_int8_strides", 7, 4, 6, 3, 4, 0, "channel", strideH=2, strideW=2)
conv("_int8_dilated", 9, 4, 6, 3, 5, 0, "channel", padding=VALID, dilationHFactor=2, dilationWFactor=2)
conv("_grouped", 6, 4, 6, 3, 6, 0, "", groups=2)
conv("_int8_pixel", 5, 8, 7, 1, 5, 0, "channel")


def depthwise(kind: str, multiplier: int, int8: bool, **options: Any) -> None:
    def written(g: SubgraphWriter) -> None:
        channels = 4
        w, b = real(1, 3, 3, channels * multiplier, scale=0.4), real(channels * multiplier, scale=0.3)
        values = {"padding": SAME, "strideH": 1, "strideW": 1, "depthMultiplier": multiplier} | options
        size = -(-6 // values["strideH"])
        shapes = (1, 6, 6, channels), (1, size, size, channels * multiplier)
        if not int8:
            inputs = [g.input(shapes[0]), g.const(w), g.const(b)]
            g.output(g.op("DEPTHWISE_CONV_2D", inputs, shapes[1], "float32", "DepthwiseConv2DOptions", **values))
            return
        s_w = np.abs(w).max(axis=(0, 1, 2)) / 127
        constants = [g.const(w, Q(s_w.tolist(), axis=3)), g.const(b, Q((0.04 * s_w).tolist(), 0, "int32"))]
        inputs = [g.input(shapes[0], X), *constants]
        g.output(g.op("DEPTHWISE_CONV_2D", inputs, shapes[1], Q(0.06, 3), "DepthwiseConv2DOptions", **values))

    case(f"DEPTHWISE_CONV_2D{kind}", written, relative=3e-6)


def old_depthwise(g: SubgraphWriter) -> None:
    """uint8 with weights that have a zero point, whose distance from it needs nine bits."""
    w, b = np.linspace(-0.5, 1.0, 36, dtype=np.float32).reshape(1, 3, 3, 4), real(4, scale=0.3)
    s_w = 1.5 / 255
    inputs = [
        g.input((1, 6, 6, 4), Q(0.04, 133, "uint8")),
        g.const(w, Q(s_w, 85, "uint8")),
        g.const(b, Q(0.04 * s_w, 0, "int32")),
    ]
    values = {"padding": SAME, "strideH": 1, "strideW": 1, "depthMultiplier": 1}
    y = Q(0.06, 120, "uint8")
    g.output(g.op("DEPTHWISE_CONV_2D", inputs, (1, 6, 6, 4), y, "DepthwiseConv2DOptions", **values))


case("DEPTHWISE_CONV_2D_uint8", old_depthwise)
depthwise("", 1, False)
depthwise("_multiplied", 2, False)
depthwise("_int8", 1, True)
depthwise("_int8_multiplied", 2, True, strideH=2, strideW=2)


def fully_connected(kind: str, quant: str, bias: bool = True, keep: bool = False) -> None:
    def written(g: SubgraphWriter) -> None:
        w, b = real(6, 8, scale=0.4), real(6, scale=0.3)
        s_w = np.abs(w).max(axis=1) / 127 if quant == "channel" else np.array(np.abs(w).max() / 127)
        shape, out = ((2, 3, 8), (2, 3, 6)) if keep else ((3, 8), (3, 6))
        x = g.input(shape, X if quant else "float32")
        weight = g.const(w, Q(s_w.tolist()) if quant else None)
        added = [g.const(b, Q((0.04 * s_w).tolist(), 0, "int32") if quant else None)] if bias else [-1]
        to: str | Q = Q(0.03, 11) if quant else "float32"
        g.output(g.op("FULLY_CONNECTED", [x, weight, *added], out, to, "FullyConnectedOptions", keepNumDims=keep))

    case(f"FULLY_CONNECTED{kind}", written, relative=3e-6)


fully_connected("", "", keep=True)
fully_connected("_int8", "channel")
fully_connected("_int8_reshaped", "channel", keep=True)
fully_connected("_int8_tensor", "tensor", bias=False)


def bare_bias(g: SubgraphWriter) -> None:
    """LiteRT never looks at a bias's scale: it need not be there, or be true."""
    weight = g.const(real(6, 8, scale=0.4), Q(0.01))
    for bias in (g.const(RNG.integers(-2000, 2000, 6).astype(np.int32)), g.const(real(6), Q(0.001, 0, "int32"))):
        g.output(g.op("FULLY_CONNECTED", [g.input((3, 8), X), weight, bias], (3, 6), Y, "FullyConnectedOptions"))


case("FULLY_CONNECTED_int8_bare_bias", bare_bias)


def half_weights(g: SubgraphWriter) -> None:
    w = g.op("DEQUANTIZE", [g.const(real(6, 8).astype(np.float16))], (6, 8), "float32", "DequantizeOptions")
    g.output(g.op("FULLY_CONNECTED", [g.input((3, 8)), w, -1], (3, 6), "float32", "FullyConnectedOptions"))


case("FULLY_CONNECTED_float16", half_weights, relative=3e-6)

for padding, size in ((SAME, 2), (VALID, 2)):
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        both(
            name, (1, 5, 5, 4), (1, 3 if padding == SAME else size, 3 if padding == SAME else size, 4), X, X,
            "Pool2DOptions", ("_same", "_valid")[padding], relative=1e-6,
            padding=padding, strideH=2, strideW=2, filterHeight=2, filterWidth=2,
        )  # fmt: skip
both("SOFTMAX", (2, 7), None, X, Q(1 / 256, -128), "SoftmaxOptions", beta=1.0)
both("RESHAPE", (2, 6), (3, 4), X, X, "ReshapeOptions", newShape=[3, 4])
for name in ("ADD", "SUB", "MUL"):

    def pair(g: SubgraphWriter, name: str = name, int8: bool = False, constant: bool = False) -> None:
        a = g.input((2, 5, 3), X if int8 else "float32")
        other = Q(0.02, -20) if int8 else None
        b = g.const(real(3), other) if constant else g.input((2, 5, 3), other or "float32")
        g.output(
            g.op(
                name,
                [a, b],
                (2, 5, 3),
                Y if int8 else "float32",
                f"{name.title()}Options",
                fusedActivationFunction=RELU,
            )
        )

    case(name, pair)
    case(f"{name}_int8", lambda g, pair=pair: pair(g, int8=True))
    case(f"{name}_int8_constant", lambda g, pair=pair: pair(g, int8=True, constant=True))

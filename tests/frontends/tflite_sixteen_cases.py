"""Small `.tflite` models with activations of 16 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.frontends.tflite_files import Q, SubgraphWriter

Build = Callable[[SubgraphWriter], None]

A, B, Y = Q(0.00031, 0, "int16"), Q(0.0007, 0, "int16"), Q(0.00052, 0, "int16")
UNIT, POWER = Q(2.0**-15, 0, "int16"), Q(2.0**-11, 0, "int16")
GENERAL = {"potScaleInt16": False}
RNG = np.random.default_rng(8)


def unary(operator: str, x: Q, y: Q, options: str = "", shape: tuple[int, ...] = (3, 40), **values: object) -> Build:
    return lambda g: g.output(g.op(operator, [g.input(shape, x)], shape, y, options, **values))


def binary(operator: str, a: Q, b: Q, y: Q, options: str, second: tuple[int, ...] = (3, 40), **values: object) -> Build:
    return lambda g: g.output(g.op(operator, [g.input((3, 40), a), g.input(second, b)], (3, 40), y, options, **values))


def with_constant(operator: str, y: Q, options: str, **values: object) -> Build:
    def written(g: SubgraphWriter) -> None:
        other = g.const(RNG.standard_normal((1, 40)), B)
        g.output(g.op(operator, [g.input((3, 40), A), other], (3, 40), y, options, **values))

    return written


def pool(operator: str, padding: int, size: tuple[int, int], y: tuple[int, int], **values: object) -> Build:
    window = {"filterHeight": 3, "filterWidth": 2, "strideH": 2, "strideW": 1, "padding": padding} | values
    shapes = (1, *size, 5), (1, *y, 5)
    return lambda g: g.output(g.op(operator, [g.input(shapes[0], A)], shapes[1], A, "Pool2DOptions", **window))


def moved(g: SubgraphWriter) -> None:
    """Numbers that only move stay as they are, whatever they stand for."""
    x, other = g.input((2, 3, 8), A), g.input((2, 1, 8), A)
    both = g.op("CONCATENATION", [x, other], (2, 4, 8), A, "ConcatenationOptions", axis=1)
    flat = g.op("RESHAPE", [both, g.const(np.array([8, 8], np.int32))], (8, 8), A, "ReshapeOptions")
    begin, size = (g.const(np.array(v, np.int32)) for v in ([1, 2], [6, -1]))
    part = g.op("SLICE", [flat, begin, size], (6, 6), A, "SliceOptions")
    begin, end, step = (g.const(np.array(v, np.int32)) for v in ([5, 0], [0, 6], [-2, 1]))
    strided = g.op("STRIDED_SLICE", [part, begin, end, step], (3, 6), A, "StridedSliceOptions", beginMask=0, endMask=0)
    turned = g.op("TRANSPOSE", [strided, g.const(np.array([1, 0], np.int32))], (6, 3), A, "TransposeOptions")
    padded = g.op("PAD", [turned, g.const(np.array([[1, 0], [0, 2]], np.int32))], (7, 5), A, "PadOptions")
    g.output(padded)


def net(g: SubgraphWriter) -> None:
    """A convolution and a linear layer with operators between and after them."""
    x = g.input((1, 6, 6, 3), A)
    w, s = RNG.standard_normal((4, 3, 3, 3)) * 0.3, 0.01
    inputs = [x, g.const(w, Q(s)), g.const(np.array([10, -20, 30, 0], np.int64), None)]
    g.graph.tensors[-1].type = 4  # int64, with the scale of the products
    values = {"padding": 0, "strideH": 1, "strideW": 1}
    y = g.op("CONV_2D", inputs, (1, 6, 6, 4), Q(0.0005, 0, "int16"), "Conv2DOptions", **values)
    y = g.op("LEAKY_RELU", [y], (1, 6, 6, 4), Q(0.0004, 0, "int16"), "LeakyReluOptions", alpha=0.1)
    window = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2, "padding": 1}
    y = g.op("MAX_POOL_2D", [y], (1, 3, 3, 4), Q(0.0004, 0, "int16"), "Pool2DOptions", **window)
    y = g.op("RESHAPE", [y, g.const(np.array([1, 36], np.int32))], (1, 36), Q(0.0004, 0, "int16"), "ReshapeOptions")
    inputs = [y, g.const(RNG.standard_normal((5, 36)) * 0.2, Q(s)), -1]
    y = g.op("FULLY_CONNECTED", inputs, (1, 5), Q(0.0003, 0, "int16"), "FullyConnectedOptions")
    g.output(g.op("SOFTMAX", [y], (1, 5), UNIT, "SoftmaxOptions", beta=1.0))


INT8, UINT8 = Q(0.04, 5), Q(0.04, 133, "uint8")
FAR, LONG = Q(0.001, 77, "int16"), Q(0.0001, 50, "int32")
SHARES = Q(1 / 65536, -32768, "int16")
EXACT: dict[str, Build] = {
    "add": binary("ADD", A, B, Y, "AddOptions", **GENERAL),
    "add_relu": binary("ADD", B, A, Y, "AddOptions", **GENERAL, fusedActivationFunction=1),
    "add_broadcast": binary("ADD", A, B, Y, "AddOptions", (1, 40), **GENERAL),
    "add_constant": with_constant("ADD", Y, "AddOptions", **GENERAL),
    "sub": binary("SUB", A, B, Y, "SubOptions", **GENERAL),
    "sub_relu6": binary("SUB", A, B, Y, "SubOptions", **GENERAL, fusedActivationFunction=3),
    "mul": binary("MUL", A, B, Q(0.0003, 0, "int16"), "MulOptions"),
    "mul_constant": with_constant("MUL", Q(0.0002, 0, "int16"), "MulOptions"),
    "leaky_relu": unary("LEAKY_RELU", A, Y, "LeakyReluOptions", alpha=0.1),
    "leaky_relu_negative": unary("LEAKY_RELU", A, Y, "LeakyReluOptions", alpha=-0.2),
    "relu": unary("RELU", A, Y),
    "logistic": unary("LOGISTIC", A, UNIT),
    "logistic_2_12": unary("LOGISTIC", Q(2.0**-12, 0, "int16"), UNIT),
    "tanh": unary("TANH", A, UNIT),
    "tanh_2_11": unary("TANH", Q(2.0**-11, 0, "int16"), UNIT),
    "max_pool": pool("MAX_POOL_2D", 0, (7, 6), (4, 6)),
    "average_pool_same": pool("AVERAGE_POOL_2D", 0, (7, 6), (4, 6)),
    "softmax": unary("SOFTMAX", A, UNIT, "SoftmaxOptions", beta=1.0),
    "softmax_beta": unary("SOFTMAX", A, UNIT, "SoftmaxOptions", beta=0.3),
    "softmax_far": unary("SOFTMAX", Q(0.01, 0, "int16"), UNIT, "SoftmaxOptions", beta=1.0),
    "softmax_of_int8": unary("SOFTMAX", INT8, SHARES, "SoftmaxOptions", beta=1.0),
    "softmax_of_int8_two": unary("SOFTMAX", INT8, SHARES, "SoftmaxOptions", (60, 2), beta=1.7),
    "moved": moved,
    "quantize_8_16": unary("QUANTIZE", INT8, Y, "QuantizeOptions"),
    "quantize_8_16_zero": unary("QUANTIZE", INT8, FAR, "QuantizeOptions"),
    "quantize_u8_16": unary("QUANTIZE", UINT8, FAR, "QuantizeOptions"),
    "quantize_16_8": unary("QUANTIZE", A, Q(0.06, -128), "QuantizeOptions"),
    "quantize_16_8_zero": unary("QUANTIZE", FAR, Q(0.06, 3), "QuantizeOptions"),
    "quantize_16_16": unary("QUANTIZE", A, Y, "QuantizeOptions"),
    "quantize_16_32": unary("QUANTIZE", A, LONG, "QuantizeOptions"),
    "quantize_16_32_zero": unary("QUANTIZE", SHARES, Q(1 / 32768, 0, "int32"), "QuantizeOptions"),
    "quantize_32_8": unary("QUANTIZE", Q(0.0001, -3, "int32"), INT8, "QuantizeOptions"),
    "quantize_32_16": unary("QUANTIZE", LONG, FAR, "QuantizeOptions"),
    "cast": unary("CAST", A, Q(1.0, 0, "float32")),
    "dequantize": unary("DEQUANTIZE", A, Q(1.0, 0, "float32")),
}
ONE_STEP: dict[str, Build] = {
    "add_power_of_two": binary("ADD", Q(2.0**-12, 0, "int16"), POWER, POWER, "AddOptions"),
    "average_pool": pool("AVERAGE_POOL_2D", 1, (7, 6), (3, 5)),
    "average_pool_relu": pool("AVERAGE_POOL_2D", 1, (7, 6), (3, 5), fusedActivationFunction=1),
    "net": net,
}


def svdf_of_bytes(g: SubgraphWriter) -> None:
    """An SVDF with a state of 8 bits, between int16 and int32, as in keyword models for microcontrollers."""
    width, units, rank, memory = 3, 2, 2, 3
    state = g.tensor("state", (1, units * rank * memory), "int8", Q(0.08, -50), variable=True)
    features = np.linspace(-0.9, 1.1, units * rank * width).reshape(-1, width)
    times = np.linspace(1.2, -0.7, units * rank * memory).reshape(-1, memory)
    x = g.op("QUANTIZE", [g.input((1, width), Q(0.0001, 0, "int16"))], (1, width), Q(0.03, -7), "QuantizeOptions")
    bias = g.const(np.array([0.5, -0.2]), Q(0.0008, 0, "int32"))
    inputs = [x, g.const(features, Q(0.01)), g.const(times, Q(0.01)), bias, state]
    y = g.op("SVDF", inputs, (1, units), Q(0.05, -100), "SVDFOptions", rank=rank, fusedActivationFunction=1)
    shares = g.op("SOFTMAX", [y], (1, units), SHARES, "SoftmaxOptions", beta=1.0)
    g.output(y, g.op("QUANTIZE", [shares], (1, units), Q(1 / 32768, 0, "int32"), "QuantizeOptions"))

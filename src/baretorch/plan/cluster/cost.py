"""Estimate the cycles of a call on a core of a cluster, with all data in its scratchpad. The planner compares parts and
tiles by it. Rates were measured on cluster8."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from baretorch.ir.graph import Tensor
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qsums import QSums


@dataclass(frozen=True)
class Rates:
    """Cycles per product, output, input and output pixel, and per number of gathered windows."""

    product: float
    output: float
    input: float = 0.0
    pixel: float = 0.0
    window: float = 0.0


_RATES: dict[str, Rates] = {  # of kernels by their file
    "qconv2d/xcv.c": Rates(0.38, 13.0, pixel=20.0, window=1.0),
    "qlinear/xcv.c": Rates(0.56, 18.0),
    "qsums/xcv.c": Rates(0.38, 5.0, pixel=20.0, window=1.0),
    "qsums/from_ref.c": Rates(0.0, 22.0),
    "qbinary/xcv.c": Rates(0.0, 8.0),
    "qpool/xcv.c": Rates(0.0, 16.0, input=1.4, pixel=40.0),
}
DEPTHWISE = "qconv2d/depthwise_xcv.c"
_OTHERS = Rates(5.0, 12.0)
APART = 16.0  # cycles for a pixel of which only some channels are gathered
THIN = 4.5  # additional cycles to gather a pixel of few channels
CALL = 50.0


def depends_on_shapes(kernel: Kernel[Any]) -> bool:
    """Return whether cycles and scratch of a kernel depend only on shapes and attributes, not on constants."""
    return kernel.source in _RATES or kernel.source == DEPTHWISE


def estimate_cycles(call: Call[Any], kernel: Kernel[Any]) -> float:
    """Estimate the cycles of a call."""
    products: float = call.op.macs(call.inputs, call.outputs)
    if kernel.unit:
        return kernel.cycles(call)
    if kernel.source == DEPTHWISE:
        return _depthwise(call)
    rates = _RATES.get(kernel.source, _OTHERS)
    x, y = call.inputs[0] if call.inputs else call.y, call.y
    pixels = y.count // y.shape[-1] if y.count and y.shape else 0
    outputs: float = y.count
    if rates.window and pixels:  # kernels compute four at a time, and repeat some if fewer remain
        made = (4 * (pixels // 4) + (0.0, 1.4, 4.0, 4.0)[pixels % 4]) / pixels
        products, outputs = made * products, made * outputs
    found = CALL + rates.product * products + rates.output * outputs + rates.input * x.count + rates.pixel * pixels
    if rates.window and kernel.scratch(call):  # otherwise windows are read in place
        pool, weight = _windows(call)
        each = rates.window if weight.shape[-1] >= 8 else 3 * rates.window + THIN / weight.shape[-1]
        if weight.shape[-1] < x.shape[-1]:  # pixels are gathered one by one
            each += APART / weight.shape[-1]
        found += pixels * pool * prod(weight.shape[1:]) * each
    return found


def _windows(call: Call[Any]) -> tuple[int, Tensor]:
    """Return the windows per output pixel and the weights of a layer that a convolution's kernel computes."""
    match call.op:
        case QSums():
            return 1, call.inputs[2]
        case QLinear():  # with several rows, which are its pixels
            return 1, call.inputs[1]
        case op:
            return prod(op.pool), call.inputs[1]


def _depthwise(call: Call[Any]) -> float:
    """Estimate a depthwise kernel. It works in turns of one or two rows of outputs: columns are gathered for all
    channels, then each channel computes its row."""
    (_, kernel_h, kernel_w, _), op = call.inputs[1].shape, call.op
    batch, height, width, channels = call.y.shape
    twice = (kernel_h, kernel_w, op.stride[0], *op.dilation) == (3, 3, 1, 1, 1)
    columns = (width - 1) * op.stride[1] + (kernel_w - 1) * op.dilation[1] + 1
    turns, left = divmod(height, 2) if twice else (0, height)
    own = turns * (20 + 28 * width) + left * (20 + (10 + 2 * kernel_w) * width)
    took: float = batch * ((turns + left) * (180 + columns * (17 + 4.5 * channels)) + channels * own)
    return CALL + took

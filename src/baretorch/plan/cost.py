"""About how many cycles a call takes on a core of a cluster with everything in its scratchpad: what parts and tiles are
chosen by."""

from __future__ import annotations

from math import prod
from typing import Any

from baretorch.ops.kernel import Call, Kernel

# Per product, output, and number of the windows that are brought together; of kernels by their file, on cluster8.
_RATES: dict[str, tuple[float, float, float]] = {"xcv": (0.45, 18.0, 1.0), "depthwise_xcv": (0.4, 24.0, 0.0)}
_OTHERS = (5.0, 12.0, 0.0)
UNIT = 128.0  # products per cycle of a unit for them, edges included
THIN = 6.0  # numbers of an image with few channels are brought one by one


def cycles(call: Call[Any], kernel: Kernel[Any]) -> float:
    products: int = call.op.macs(call.inputs, call.outputs)
    if kernel.unit:
        return 100.0 + products / UNIT
    per_product, per_output, per_window = _RATES.get(kernel.variant, _OTHERS)
    x, y = call.inputs[0] if call.inputs else call.y, call.y
    rows = y.count // y.shape[-1] if y.count and y.shape else 0
    taps = prod(call.inputs[1].shape[1:]) if len(call.inputs) > 1 and call.inputs[1].data is not None else 0
    gathered = rows * taps * per_window * (THIN if not x.shape or x.shape[-1] < 8 else 1.0)
    return 50.0 + per_product * products + per_output * y.count + gathered

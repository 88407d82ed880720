"""Values of a region's tensors on the way to TOSA, and the building blocks of the rows of `to_tosa.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, Graph, Shape, Tensor
from baretorch.npu.tosa import PROPAGATE, SINGLE_ROUND, Operator, TosaBlock, TosaKind, TosaValue
from baretorch.ops.helpers.window import Padding, Pair

EXACT = 30  # a RESCALE by 2^30 / 2^30 changes nothing


class NotTaken(Exception):
    """An NPU does not support an operator; the text says why."""


@dataclass
class RegionValues:
    """The values of a region's tensors, in a block."""

    graph: Graph
    block: TosaBlock = field(default_factory=TosaBlock)
    values: dict[str, TosaValue] = field(default_factory=dict)
    scaled_sums: bool = False  # whether the operands of a sum may be scaled by it

    def value(self, t: Tensor) -> TosaValue:
        """Return a tensor's value; a constant is added if it is new."""
        if t.name not in self.values:
            self.values[t.name] = self.block.const(t.numbers, TosaKind.INT8)
        return self.values[t.name]

    def rescale(
        self,
        x: TosaValue,
        kind: TosaKind,
        multiplier: Sequence[int],
        shift: Sequence[int],
        x_zero: int = 0,
        zero: int = 0,
    ) -> TosaValue:
        """Return (x - x_zero) * multiplier / 2^shift, rounded half up, + zero, with a multiplier per index of the last
        axis if there are several."""
        constants = (
            self.block.const(np.array(multiplier), TosaKind.INT32),
            self.block.const(np.array(shift), TosaKind.INT8),
            self.block.const(np.array([x_zero]), x.kind),
            self.block.const(np.array([zero]), kind),
        )
        fields = (True, SINGLE_ROUND, len(multiplier) > 1, False, False)
        return self.block.add(Operator.RESCALE, x.shape, kind, x, *constants, fields=fields)

    def wide(self, x: TosaValue, zero: int, factor: int = 1) -> TosaValue:
        """Return (x - zero) * factor as int32. The factor has 16 bits."""
        power = EXACT if factor == 1 else 14
        return self.rescale(x, TosaKind.INT32, [factor << power], [power], zero)

    def requantize(
        self, acc: TosaValue, multiplier: Array, shift: int, zero: int, lo: int, hi: int, most: int
    ) -> TosaValue:
        """Requantize int32 to int8 by Baretorch's rule. Accumulators are at most `most`: TOSA does not define results
        for those that have more bits than its shift allows."""
        limit = 1 << (31 - shift)
        if most >= limit:
            raise NotTaken(
                f"its sums reach {most:,}; for a factor like its TOSA says what comes of those below {limit:,}"
            )
        each = [int(m) for m in multiplier.reshape(-1)]
        if len(set(each)) == 1:
            each = each[:1]
        return self.clamp(self.rescale(acc, TosaKind.INT8, each, [32 - shift] * len(each), zero=zero), lo, hi)

    def clamp(self, x: TosaValue, lo: int, hi: int) -> TosaValue:
        if (lo, hi) == (-128, 127):
            return x
        ends = (lo.to_bytes(1, "little", signed=True), hi.to_bytes(1, "little", signed=True))
        return self.block.add(Operator.CLAMP, x.shape, x.kind, x, fields=(*ends, PROPAGATE))

    def reshape(self, x: TosaValue, shape: Shape) -> TosaValue:
        return x if x.shape == shape else self.block.add(Operator.RESHAPE, shape, x.kind, x, shape)

    def transpose(self, x: TosaValue, dims: Shape) -> TosaValue:
        if dims == tuple(range(len(dims))):
            return x
        shape = tuple(x.shape[d] for d in dims)
        return self.block.add(Operator.TRANSPOSE, shape, x.kind, x, fields=(dims,))

    def slice(self, x: TosaValue, axis: int, start: int, stop: int) -> TosaValue:
        begin = tuple(start if i == axis else 0 for i in range(len(x.shape)))
        return self.cut(x, begin, tuple(stop - start if i == axis else n for i, n in enumerate(x.shape)))

    def cut(self, x: TosaValue, begin: Shape, shape: Shape) -> TosaValue:
        return x if x.shape == shape else self.block.add(Operator.SLICE, shape, x.kind, x, begin, shape)

    def join(self, parts: Sequence[TosaValue], axis: int) -> TosaValue:
        if len(parts) == 1:
            return parts[0]
        total = sum(p.shape[axis] for p in parts)
        shape = tuple(total if i == axis else n for i, n in enumerate(parts[0].shape))
        return self.block.add(Operator.CONCAT, shape, parts[0].kind, *parts, fields=(axis,))

    def windows(
        self, x: TosaValue, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair
    ) -> tuple[TosaValue, Padding]:
        """Return the image and its padding without rows and columns that no window reaches, because TOSA's windows must
        cover all. The image is sliced once: Vela would read the second of two slices in place, but copies the first."""
        pads, shape = list(padding), list(x.shape)
        for side in (0, 1):
            size = x.shape[1 + side] + pads[2 * side] + pads[2 * side + 1] - dilation[side] * (kernel[side] - 1) - 1
            over = size % stride[side]
            unpadded = min(over, pads[2 * side + 1])
            pads[2 * side + 1] -= unpadded
            shape[1 + side] -= over - unpadded
        if not all(shape):
            raise NotTaken("its windows see nothing but padding")
        return self.cut(x, (0,) * len(shape), tuple(shape)), (pads[0], pads[1], pads[2], pads[3])

    def convolve(
        self,
        operator: Operator,
        x: TosaValue,
        weight: Array,
        bias: Array,
        x_zero: int,
        shape: Shape,
        fields: Sequence[Any],
    ) -> TosaValue:
        """Return the accumulators of a convolution of any kind."""
        inputs = (
            self.block.const(weight, TosaKind.INT8),
            self.block.const(bias, TosaKind.INT32),
            self.block.const(np.array([x_zero]), TosaKind.INT8),
            self.block.const(np.array([0]), TosaKind.INT8),
        )
        return self.block.add(operator, shape, TosaKind.INT32, x, *inputs, fields=(*fields, False, int(TosaKind.INT32)))

    def max_pool(self, x: TosaValue, kernel: Pair, stride: Pair, padding: Padding) -> TosaValue:
        x, pads = self.windows(x, kernel, stride, padding, (1, 1))
        h, w = sizes(x.shape, kernel, stride, pads, (1, 1))
        shape = (x.shape[0], h, w, x.shape[3])
        return self.block.add(Operator.MAX_POOL2D, shape, x.kind, x, fields=(kernel, stride, pads, PROPAGATE))


def sizes(x: Shape, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair) -> Pair:
    """Return the height and width of the output of a convolution or pool."""
    top, bottom, left, right = padding
    return (
        (x[1] + top + bottom - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1,
        (x[2] + left + right - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1,
    )

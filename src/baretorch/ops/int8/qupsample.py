"""qupsample_bilinear2d: int8 pixels between their neighbours, in the same scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.window import Pair, image_params
from baretorch.ops.int8.arithmetic import dequantize
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.rules import EVERY, Walk
from baretorch.ops.upsample import UpsampleBilinear2d, bilinear_tables
from baretorch.targets.features import MVE

BITS = 11  # of a share: those of a row and a column multiply to 22, times a byte


@dataclass(frozen=True)
class QUpsampleBilinear2d(Quantized, name="qupsample_bilinear2d"):
    """x int8[N, H, W, C] -> upsample_bilinear2d with shares of 1/2048. Shares add up to 1, so the zero point stays
    where it is."""

    size: Pair
    step: tuple[float, float]
    align_corners: bool = False

    @property
    def geometry(self) -> UpsampleBilinear2d:
        return UpsampleBilinear2d(self.size, self.step, self.align_corners)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(inputs[0].dtype is DType.INT8, self, "the input is not quantized", inputs, "int8[N, H, W, C]")
        return self.infer_as_float(inputs, DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        rows, down = self.sources(0, x.shape[1])
        columns, right = self.sources(1, x.shape[2])
        between = _mix(x, columns, right.reshape(-1, 1), 2)
        y = _mix(between, rows, down.reshape(-1, 1, 1), 1)
        return ((y + (1 << (2 * BITS - 1)) >> 2 * BITS).astype(np.int8),)

    def sources(self, axis: int, size: int) -> tuple[Array, Array]:
        """Return for each output along the height (0) or width (1) the first of two inputs, and the parts of 2048 of
        the next."""
        first, share = self.geometry.sources(axis, size)
        return first, np.rint(share.astype(np.float64) * (1 << BITS)).astype(np.int16)


def _mix(x: Array, first: Array, share: Array, axis: int) -> Array:
    after = np.minimum(first + 1, x.shape[axis] - 1)
    wide = share.astype(np.int64)
    return np.asarray(((1 << BITS) - wide) * x.take(first, axis) + wide * x.take(after, axis))


def bilinear(walk: Walk, node: Node) -> None:
    """Add the int8 form of upsample_bilinear2d. If the output has another scale, it gets that at the end, so that
    numbers which it cannot hold are mixed before they are clipped."""
    op, (x,), (y,) = node.op, node.inputs, node.outputs
    assert isinstance(op, UpsampleBilinear2d)
    stored = QUpsampleBilinear2d(op.size, op.step, op.align_corners)
    have, want = walk.scale(x), walk.quant(y)
    if want is None or want == have:
        walk.same(node, stored)
        return
    mixed = walk.add(stored, y, walk.graph[y].shape, have, walk.int8(x))
    table = walk.table(y, dequantize(EVERY, have.scale[0], have.zero_point[0]), want)
    walk.emit(node, Lookup(), mixed, table)


def _params(call: Call[QUpsampleBilinear2d]) -> Params:
    return Params("bt_qupsample_bilinear2d", image_params(call.x.shape, call.y.shape))


_REF = Kernel[QUpsampleBilinear2d]("bt_qupsample_bilinear2d_ref", "qupsample/ref.c", _params, pack=bilinear_tables)
KERNELS = (_REF.for_cpu("mve", MVE, fits=lambda call: call.x.shape[3] >= 4), _REF)
